from __future__ import annotations

import datetime
import os
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tkg_incremental.datasets.download import MIRROR_VARIABLE
from tkg_incremental.datasets.icews import read_events
from tkg_incremental.datasets.icews0515 import ICEWS0515, read_archive, without
from tkg_incremental.datasets.icews14 import ICEWS14
from tkg_incremental.datasets.lines import DataError

FIRST, LAST = datetime.date(2014, 1, 1), datetime.date(2014, 12, 31)
DAY = FIRST.toordinal()

mirror = pytest.mark.skipif(not os.environ.get(MIRROR_VARIABLE), reason=f"needs the raw files: set {MIRROR_VARIABLE}")


def test_reading_events(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("Iran\tConsult\tChina\t2014-01-02\nChina\tMake a visit\tIran\t2014-01-01\n")
    assert read_events(path, FIRST, LAST) == [
        ("Iran", "Consult", "China", DAY + 1),
        ("China", "Make a visit", "Iran", DAY),
    ]


@pytest.mark.parametrize(
    ("date", "problem"),
    [
        ("2013-12-31", r"line 1: expected a day from 2014-01-01 to 2014-12-31 \(got 2013-12-31\)"),
        ("2014-02-30", r"line 1: expected a date that exists \(got '2014-02-30'"),
        ("2014", r"line 1: expected a date YYYY-MM-DD \(got '2014'\)"),
    ],
)
def test_dates(tmp_path: Path, date: str, problem: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text(f"Iran\tConsult\tChina\t{date}\n")
    with pytest.raises(DataError, match=problem):
        read_events(path, FIRST, LAST)


def test_reading_an_archive(tmp_path: Path) -> None:
    (tmp_path / "entity2id.txt").write_text("Iran\t0\nChina\t1\n")
    (tmp_path / "relation2id.txt").write_text("Consult\t0\n")
    for name, hours in (("train", 0), ("valid", 24), ("test", 71)):
        (tmp_path / f"{name}.txt").write_text(f"0\t0\t1\t{hours}\t-1\n")
    assert read_archive(tmp_path, FIRST) == [("Iran", "Consult", "China", DAY + day) for day in (0, 1, 2)]


def test_events_less_others() -> None:
    a, b, c = (("Iran", "Consult", "China", DAY + i) for i in range(3))
    assert without(Path("x.zip"), [a, b, a, c, a], [a, c]) == [b, a, a]
    with pytest.raises(DataError, match=r"expected every validation and test event \(missing 2, such as 'Iran'"):
        without(Path("x.zip"), [a, b], [a, c, c])


@mirror
def test_icews14(tmp_path: Path) -> None:
    dataset = ICEWS14(tmp_path)
    assert str(dataset) == (
        "ICEWS14(365 steps 2014-01-01 … 2014-12-31, 7128 entities, 230 relations, "
        "72826 / 8941 / 8963 rows, 72826 / 8941 / 8963 facts)"
    )
    head, rel, tail, step = (
        dataset.entities.index("Xi Jinping"),
        dataset.relations.index("Consult"),
        dataset.entities.index("Le Hong Anh"),
        dataset.step_of("2014-08-28"),
    )
    assert [head, rel, tail, step] in dataset.timeline.train.quads().tolist()
    assert dataset.timeline.is_events


@mirror
def test_icews0515(tmp_path: Path) -> None:
    dataset = ICEWS0515(tmp_path)
    assert str(dataset) == (
        "ICEWS0515(4017 steps 2005-01-01 … 2015-12-31, 10488 entities, 251 relations, "
        "368962 / 46275 / 46092 rows, 368962 / 46275 / 46092 facts)"
    )
    with zipfile.ZipFile(Path(os.environ[MIRROR_VARIABLE]) / "icews05-15" / "ICEWS0515.zip") as archive:
        days = Counter(
            int(line.split(b"\t")[3]) // 24
            for name in ("train", "valid", "test")
            for line in archive.read(f"ICEWS0515/{name}.txt").splitlines()
        )
    found = Counter(
        step for split in ("train", "val", "test") for step in dataset.timeline.split(split).quads()[:, 3].tolist()
    )
    assert found == days
