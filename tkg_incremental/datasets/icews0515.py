from __future__ import annotations

import datetime
import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import ClassVar

from tkg_incremental.datasets.download import MIRROR_VARIABLE, download
from tkg_incremental.datasets.icews import Event, ICEWSDataset
from tkg_incremental.datasets.lines import DataError, parse_id, read_fields, read_names

ARCHIVE = "ICEWS0515.zip"
ARCHIVE_UPSTREAM = "https://raw.githubusercontent.com/GSYfate/GHT/9dc48e7d2e24df2e4d1f720fe65ed45394f7c713"
_HOURS = 24


class ICEWS0515(ICEWSDataset):
    r"""ICEWS05-15: political events of the years 2005 to 2015 from the Integrated Crisis Early Warning System, in the
    splits of the `"Learning Sequence Encoders for Temporal Knowledge Graph Completion"
    <https://arxiv.org/abs/1809.03202>`_ paper.

    Each fact is an event of one day. The train events are those of an archive of all events that are neither in the
    validation nor in the test file.

    10,488 entities, 251 relations, 4,017 steps; 368,962 train, 46,275 validation and 46,092 test quads.

    Args:
        root: Where the dataset is kept.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    folder: ClassVar[str] = "icews05-15"
    first_day: ClassVar[datetime.date] = datetime.date(2005, 1, 1)
    last_day: ClassVar[datetime.date] = datetime.date(2015, 12, 31)
    checksums: ClassVar[dict[str, str]] = {
        "valid.txt": "404516f2da966c563ab6d81f1355ec5c67a9aa77c111bf712429e65136162b23",
        "test.txt": "d034cd94ace08279639526cbe2ce34829562941ddd1301e6afa9e0ffa7a5b160",
        ARCHIVE: "eb659f11496d83d3a60bb0cdfefb9ede41e653024cace8cd556003eab13e3599",
    }

    def download(self) -> None:
        super().download()
        # A mirror has all files of the dataset in one folder; upstream, the archive is in another repository.
        folder = self.folder if os.environ.get(MIRROR_VARIABLE) else "data"
        download({f"{folder}/{ARCHIVE}": self.checksums[ARCHIVE]}, self.raw_dir, ARCHIVE_UPSTREAM)

    def events(self) -> dict[str, list[Event]]:
        raw, held_out = Path(self.raw_dir), super().events()
        folder = raw / Path(ARCHIVE).stem
        with zipfile.ZipFile(raw / ARCHIVE) as file:
            for name in ("entity2id.txt", "relation2id.txt", "train.txt", "valid.txt", "test.txt"):
                file.extract(f"{folder.name}/{name}", raw)
        all_events = read_archive(folder, self.first_day)
        train = without(raw / ARCHIVE, all_events, held_out["val"] + held_out["test"])
        return {"train": train, **held_out}


def read_archive(folder: Path, first_day: datetime.date) -> list[Event]:
    """Reads the events of an unpacked archive: ``head ⇥ rel ⇥ tail ⇥ hours ⇥ -1`` by ids, hours since the first day.

    Args:
        folder: Where its files are.
        first_day: The day of hour 0.
    """
    entities, relations = read_names(folder / "entity2id.txt"), read_names(folder / "relation2id.txt")
    events = []
    for path in (folder / name for name in ("train.txt", "valid.txt", "test.txt")):
        for number, (head, rel, tail, hours, _) in read_fields(path, (5,)):
            hour = parse_id(path, number, hours, "the hours", 1 << 31)
            events.append(
                (
                    entities[parse_id(path, number, head, "a head", len(entities))],
                    relations[parse_id(path, number, rel, "a relation", len(relations))],
                    entities[parse_id(path, number, tail, "a tail", len(entities))],
                    first_day.toordinal() + hour // _HOURS,
                )
            )
    return events


def without(path: Path, events: list[Event], others: list[Event]) -> list[Event]:
    """Events less others, each as often as it is among them, in their order.

    Args:
        path: The file the events come from, for error messages.
        events: All events.
        others: Events to leave out, all of which must be among ``events``.
    """
    left = Counter(others)
    kept = []
    for event in events:
        if left[event] > 0:
            left[event] -= 1
        else:
            kept.append(event)
    missing = +left
    if missing:
        head, rel, tail, day = next(iter(missing))
        date = datetime.date.fromordinal(day)
        problem = f"expected every validation and test event (missing {missing.total()}, such as "
        raise DataError(path, None, f"{problem}{head!r}, {rel!r}, {tail!r} on {date})")
    return kept
