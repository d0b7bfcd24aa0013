"""How a graph remembers the way its files are read."""

from __future__ import annotations

import pytest

from tkg_incremental.data.dates import parse_instant
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live.reading import date_parser, from_tables, to_iso, to_tables


@pytest.mark.parametrize(
    "read",
    [
        ReadOptions(),
        ReadOptions(columns={"head": "Employee", "start": "Hired"}, delimiter=";", dayfirst=True),
        ReadOptions(columns={"head": 0, "rel": 1, "tail": 2, "time": 3}, date_format="%d.%m.%Y", outliers="keep"),
    ],
)
def test_options_come_back_from_their_tables(read: ReadOptions) -> None:
    assert from_tables(to_tables(read)) == read


def test_defaults_need_no_table() -> None:
    assert to_tables(None) == to_tables(ReadOptions()) == {}


def test_names_of_a_file_without_header_become_positions() -> None:
    assert to_tables(ReadOptions(columns=["head", "tail", "rel", "time"])) == {
        "columns": {"head": 0, "tail": 1, "rel": 2, "time": 3}
    }


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"columns": {"worker": "Employee"}}, r"\[columns\] has no option 'worker' \(expected one of head, "),
        ({"columns": 3}, r"\[columns\] must be a table of names or positions \(got 3\)"),
        ({"read": {"dayfirst": "yes"}}, r"dayfirst in \[read\] must be true or false \(got 'yes'\)"),
        ({"read": {"delimiter": ";;"}}, r"\[read\] cannot be used: delimiter must be one character \(got ';;'\)"),
    ],
)
def test_tables_that_cannot_be_used(tables: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        from_tables(tables)


def test_dates_of_questions_are_read_as_those_of_the_files() -> None:
    assert to_iso("03/04/2024", "day", ReadOptions(dayfirst=True)) == "2024-04-03"
    assert to_iso("4.3.24", "month", ReadOptions(date_format="%d.%m.%y")) == "2024-03"
    for same in ("2024-04-03", "2024-04", "soon", "31/31/2024", 3):  # coarse dates stay coarse, for the note on them
        assert to_iso(same, "day", ReadOptions(dayfirst=True)) == same
        assert to_iso(same, "day", ReadOptions(date_format="%d.%m.%Y")) == same
    assert to_iso("03/04/2024", "day", ReadOptions()) == "03/04/2024"


def test_dates_of_changes() -> None:
    day = parse_instant("2024-04-03", "day")
    assert date_parser("day", ReadOptions(dayfirst=True))("03/04/2024") == day
    own = date_parser("day", ReadOptions(date_format="%d.%m.%Y"))
    assert own("03.04.2024") == own("2024-04-03") == day
    with pytest.raises(ValueError, match="got 'soon'"):
        own("soon")
