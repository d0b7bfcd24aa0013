"""Facts of files for a live graph."""

from __future__ import annotations

from pathlib import Path

from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live import OPEN
from tkg_incremental.live.reading import read_named_facts

TEXT = 'head,rel,tail,start,end\n"Ann, Dr.",leads,R&D,2026-01-05,\nBob,leads,Sales,,2026-01-09\n'


def test_intervals_are_half_open(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(TEXT)
    found = read_named_facts(path, "day")
    assert (found.unit, found.entities, found.relations) == ("day", ["Ann, Dr.", "R&D", "Bob", "Sales"], ["leads"])
    start = int(found.valid_from[0])
    # Without a start, a fact holds from the first instant that occurs; its last day is included.
    assert found.valid_from.tolist() == [start, start]
    assert found.valid_to.tolist() == [OPEN, start + 5]
    assert found.rows() == [("Ann, Dr.", "leads", "R&D", start, None), ("Bob", "leads", "Sales", start, start + 5)]


def test_numbers_that_are_no_years(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("head,rel,tail,start\na,r,b,1\nb,r,c,2\n")
    found = read_named_facts(path)
    assert (found.unit, found.valid_from.tolist()) == ("index", [1, 2])


def test_options(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("Employee;Role;Team;From\nAnn;leads;R&D;03/04/2024\n")
    columns = {"head": "Employee", "rel": "Role", "tail": "Team", "start": "From"}
    found = read_named_facts(path, "day", ReadOptions(columns=columns, delimiter=";", dayfirst=True))
    plain = tmp_path / "plain.csv"
    plain.write_text("head,rel,tail,start\nAnn,leads,R&D,2024-04-03\n")
    assert found.valid_from.tolist() == read_named_facts(plain, "day").valid_from.tolist()
