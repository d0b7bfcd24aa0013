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
        TimeAxis((1,), (1,), "month")
    with pytest.raises(ValueError, match=r"one entry per step \(got 2 and 1\)"):
        TimeAxis((1, 2), (1,))
    with pytest.raises(ValueError, match=r"one entry per step \(got 0 and 0\)"):
        TimeAxis.from_instants([])
