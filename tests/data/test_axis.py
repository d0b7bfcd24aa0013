import pickle

import pytest

from tkg_incremental.data import TimeAxis, parse_instant


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("2021", "year", 2021),
        (" 2021 ", "year", 2021),
        ("-44", "year", -44),
        ("2021-01-20", "year", 2021),
        ("2021-##-##", "year", 2021),
        ("0001-01-02", "day", 2),
        ("17", "index", 17),
    ],
)
def test_parse_instant(text: str, unit: str, expected: int) -> None:
    assert parse_instant(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("yesterday", "year", "expected a year or a date YYYY-MM-DD (got 'yesterday')"),
        ("", "year", "expected a year or a date YYYY-MM-DD (got '')"),
        ("2021-02-30", "year", "expected a date that exists (got '2021-02-30'"),
        ("2021-02-30", "day", "expected a date that exists (got '2021-02-30'"),
        ("0000-01-01", "day", "expected a date that exists (got '0000-01-01'"),
        ("2021", "day", "expected a date YYYY-MM-DD (got '2021')"),
        ("2021-01-20", "index", "expected an integer (got '2021-01-20')"),
    ],
)
def test_parse_instant_says_what_is_wrong(text: str, unit: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_instant(text, unit)
    assert message in str(error.value)


def test_step_of_and_labels() -> None:
    axis = TimeAxis((1996, 1997, 1998), (1996, 1997, 1999), "year")
    assert axis.num_steps == 3
    assert axis.labels == ["1996", "1997", "1998–1999"]
    assert [axis.step_of(when) for when in (1996, "1997", "1998-12-31", 1999)] == [0, 1, 2, 2]


def test_days() -> None:
    first = parse_instant("2020-02-28", "day")
    axis = TimeAxis.from_instants([first + 1, first, first + 2, first], "day")
    assert axis.labels == ["2020-02-28", "2020-02-29", "2020-03-01"]
    assert axis.step_of("2020-02-29") == 1


@pytest.mark.parametrize("when", [1995, 2000, "2000-01-01"])
def test_step_of_outside(when: str | int) -> None:
    with pytest.raises(ValueError, match=r"time must lie in 1996 … 1999 \(got .*\)"):
        TimeAxis((1996, 1998), (1997, 1999)).step_of(when)


def test_bad_axes() -> None:
    with pytest.raises(ValueError, match="unit must be one of"):
        TimeAxis((1,), (1,), "fortnight")
    with pytest.raises(ValueError, match=r"one entry per step \(got 2 and 1\)"):
        TimeAxis((1, 2), (1,))
    with pytest.raises(ValueError, match=r"one entry per step \(got 0 and 0\)"):
        TimeAxis.from_instants([])


@pytest.mark.parametrize(
    ("first", "last", "unit", "labels"),
    [
        ("2023-12-31T22:00", "2024-01-01T00:00", "hour", ["2023-12-31 22:00", "2023-12-31 23:00", "2024-01-01 00:00"]),
        ("2024-02-28", "2024-03-01", "day", ["2024-02-28", "2024-02-29", "2024-03-01"]),
        ("2020-W52", "2021-W01", "week", ["2020-W52", "2020-W53", "2021-W01"]),
        ("2023-12", "2024-01", "month", ["2023-12", "2024-01"]),
        ("2023-Q4", "2024-Q1", "quarter", ["2023-Q4", "2024-Q1"]),
        (-1, 1, "year", ["-1", "0", "1"]),
        (0, 2, "index", ["0", "1", "2"]),
    ],
)
def test_ranges_of_every_unit(first: str | int, last: str | int, unit: str, labels: list[str]) -> None:
    axis = TimeAxis.from_range(first, last, unit)
    assert axis.labels == labels
    assert [axis.step_of(label) for label in labels] == list(range(len(labels)))


def test_a_range_equals_the_same_instants() -> None:
    axis = TimeAxis.from_range(2000, 2003)
    same = TimeAxis(tuple(axis.first), tuple(axis.last), axis.unit)
    assert axis == same == pickle.loads(pickle.dumps(axis))
    assert hash(axis) == hash(same)
    assert axis != TimeAxis.from_range(2000, 2004)
    assert axis != TimeAxis.from_range(2000, 2003, "index")
    assert axis.labels == same.labels


def test_long_axes_cost_nothing_per_step() -> None:
    axis = TimeAxis.from_range("2000-01-01T00:00", "2024-12-31T23:00", "hour")
    assert axis.num_steps > 200_000
    assert isinstance(axis.first, range)
    assert axis.last is axis.first
    assert len(pickle.dumps(axis)) < 500
    assert axis.labels[-1] == "2024-12-31 23:00"
    assert axis.step_of("2024-12-31 23:59") == axis.num_steps - 1


def test_labels_are_a_sequence() -> None:
    labels = TimeAxis.from_range(2000, 2020).labels
    assert (labels[-1], labels[1:3], labels.index("2004"), len(labels)) == ("2020", ["2001", "2002"], 4, 21)
    assert repr(labels) == "['2000', '2001', '2002', '…', '2018', '2019', '2020']"
    assert labels != ["2000"]
    with pytest.raises(IndexError):
        labels[21]


def test_bad_ranges() -> None:
    with pytest.raises(ValueError, match=r"last must not be before first \(got 2003 … 2000\)"):
        TimeAxis.from_range(2003, 2000)
    with pytest.raises(ValueError, match="an axis must have at most 2000000 steps"):
        TimeAxis.from_range(0, 10**9, "index")


def test_labels_are_dates() -> None:
    axis = TimeAxis((1996, 1997, 1998), (1996, 1997, 1999))
    assert [axis.step_of(label) for label in axis.labels] == [0, 1, 2]
    assert not axis.is_after("1998–1999")
    assert axis.is_after("2000–2001")
    with pytest.raises(ValueError, match="the label of a step, such as 1998–1999"):
        axis.step_of("1998–2005")
