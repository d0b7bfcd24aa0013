"""Which column is which, by its name or as asked for."""

import logging
from pathlib import Path

import pytest

from tkg_incremental.datasets.columns import find_columns
from tkg_incremental.datasets.lines import DataError

FILE = Path("f.csv")
INTERVAL = {"head": 0, "rel": 1, "tail": 2, "start": 3, "end": 4}
POINT = {"head": 0, "rel": 1, "tail": 2, "time": 3}


@pytest.mark.parametrize(
    ("header", "places"),
    [
        ("head rel tail time", POINT),
        ("Subject Predicate OBJECT Date", POINT),
        ("s p o timestamp", POINT),
        ("h r t time", POINT),
        ("Source Relation Target At", POINT),
        ("from relation to date", POINT),
        ("head relation tail from to", INTERVAL),
        ("from relation to start end", INTERVAL),
        ("subject relation object Valid_From validTo", INTERVAL),
        ("subject relation object since until", INTERVAL),
        ("subject relation object START-DATE end.date", INTERVAL),
        ("subject relation object begin", {"head": 0, "rel": 1, "tail": 2, "start": 3}),
        ("subject relation object date until", INTERVAL),
    ],
)
def test_headers(header: str, places: dict[str, int]) -> None:
    assert find_columns(FILE, 1, header.split()) == (places, True)


def test_an_interval_wins_over_a_time_stamp() -> None:
    fields = ["timestamp", "head", "rel", "tail", "Valid From", "Valid To"]
    assert find_columns(FILE, 1, fields)[0] == {role: place + 1 for role, place in INTERVAL.items()}


def test_no_header() -> None:
    for fields, places in ((["a", "r", "b", "2000"], POINT), (["s", "p", "o", "2000", ""], INTERVAL)):
        assert find_columns(FILE, 1, fields) == (places, False)


def test_columns_by_name_and_position() -> None:
    header = ["Employee", "Relation", "Company", "Hired", "Left"]
    columns = {"head": "employee", "tail": "Company", "start": "Hired", "end": "Left"}
    assert find_columns(FILE, 1, header, columns)[0] == INTERVAL
    by_place = find_columns(FILE, 1, ["2000", "a", "r", "b"], {"time": 0, "head": 1, "rel": 2, "tail": 3})
    assert by_place == ({"time": 0, "head": 1, "rel": 2, "tail": 3}, False)


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        ("Employee Relation Company Start End", None, r"f.csv, line 1: .*; not found: head, tail\. Name them with col"),
        ("Employee Relation Object Salary", None, r"--columns head=…,start=… \(got"),
        ("head rel tail op time", None, "the column 'op' holds changes: apply them with `tkg-incremental update`"),
        ("Operation head rel tail time", None, "the column 'Operation' holds changes"),
        ("head rel tail change time", {"time": "time"}, "the column 'change' holds changes"),
        ("head rel tail time", {"head": "Employee"}, "expected a column 'Employee' for head"),
        ("a b 1", None, "expected the 4 columns head, rel, tail, time"),
        ("Nr Wer Beziehung Was Ab Bis", None, "on the command line --columns head=…"),
    ],
)
def test_headers_that_do_not_fit(header: str, columns: dict[str, str] | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_columns(FILE, 1, header.split(), columns)


def test_columns_with_unknown_roles() -> None:
    with pytest.raises(ValueError, match=r"columns must map from head, .* \(got subject\)"):
        find_columns(FILE, 1, ["a"], {"subject": "a"})


def test_other_columns_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    find_columns(FILE, 1, ["id", "head", "rel", "tail", "time", "note"])
    assert [record.message for record in caplog.records] == ["f.csv: columns that are not read: 'id', 'note'"]


@pytest.mark.parametrize("header", ["head,head,rel,tail,start", "head,rel,tail,start,Start", "head,rel,tail,at, at "])
def test_two_columns_of_one_name(header: str) -> None:
    with pytest.raises(DataError, match=r"expected one column '.+' \(got 'head"):
        find_columns(Path("facts.csv"), 1, header.split(","))
    # Which one is meant may be said.
    find_columns(Path("facts.csv"), 1, header.split(","), columns={"head": 0, "rel": 2, "tail": 3, "start": 4})
