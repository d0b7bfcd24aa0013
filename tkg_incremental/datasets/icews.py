"""What the two ICEWS benchmarks share: dated events between named actors, one step per day."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, ClassVar

import torch

from tkg_incremental.data import TimeAxis
from tkg_incremental.data.axis import parse_instant
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.datasets.atise import SPLIT_FILES
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.datasets.download import download
from tkg_incremental.datasets.lines import DataError, read_fields

UPSTREAM = "https://raw.githubusercontent.com/BorealisAI/de-simple/b06c5b00b41d29015507c44b5253fc43def3996d/datasets"

#: Head, relation, tail and day, as names and a proleptic ordinal.
Event = tuple[str, str, str, int]


class ICEWSDataset(TKGDataset):
    """A benchmark of point events: ``head ⇥ rel ⇥ tail ⇥ YYYY-MM-DD`` by names.

    A step is a day, and every day of the years covered is a step. Each fact holds on its day only.

    Args:
        root: Where the dataset is kept.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    folder: ClassVar[str]
    first_day: ClassVar[datetime.date]
    last_day: ClassVar[datetime.date]
    #: SHA-256 of each raw file.
    checksums: ClassVar[dict[str, str]]

    def __init__(self, root: str | Path, **kwargs: Any) -> None:
        super().__init__(root, **kwargs)

    @property
    def raw_file_names(self) -> list[str]:
        return list(self.checksums)

    def download(self) -> None:
        files = {f"{self.folder}/{name}": digest for name, digest in self.checksums.items() if name.endswith(".txt")}
        download(files, self.raw_dir, UPSTREAM)

    def events(self) -> dict[str, list[Event]]:
        """The events of each split that has a file."""
        raw, days = Path(self.raw_dir), (self.first_day, self.last_day)
        files = {split: raw / name for split, name in SPLIT_FILES.items() if name in self.checksums}
        return {split: read_events(path, *days) for split, path in files.items()}

    def build(self) -> Graph:
        self.download()  # a damaged file is noticed by its checksum and fetched again
        first, last = self.first_day.toordinal(), self.last_day.toordinal()
        # Names are numbered as they occur.
        entities: dict[str, int] = {}
        relations: dict[str, int] = {}
        facts = {}
        for split, events in self.events().items():
            rows = [
                (
                    entities.setdefault(head, len(entities)),
                    relations.setdefault(rel, len(relations)),
                    entities.setdefault(tail, len(entities)),
                    day - first,
                )
                for head, rel, tail, day in events
            ]
            facts[split] = one_step_facts(torch.tensor(rows, dtype=torch.long).view(-1, 4))
        axis = TimeAxis.from_range(first, last, "day")
        return Graph(facts, list(entities), list(relations), axis)


def read_events(path: Path, first_day: datetime.date, last_day: datetime.date) -> list[Event]:
    """Reads ``head ⇥ rel ⇥ tail ⇥ YYYY-MM-DD`` lines.

    Args:
        path: The file.
        first_day: Earliest day allowed.
        last_day: Latest day allowed.
    """
    events = []
    for number, (head, rel, tail, date) in read_fields(path, (4,)):
        try:
            day = parse_instant(date, "day")
        except ValueError as error:
            raise DataError(path, number, str(error)) from None
        if not first_day.toordinal() <= day <= last_day.toordinal():
            raise DataError(path, number, f"expected a day from {first_day} to {last_day} (got {date})")
        events.append((head, rel, tail, day))
    return events
