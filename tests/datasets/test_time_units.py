import pytest

from tkg_incremental.data.dates import parse_period
from tkg_incremental.datasets.time_units import choose_unit, finest_unit


def unit(starts: str, ends: str = "", count: int = 10, coarsest: bool = False) -> str:
    first, last = ({parse_period(text) for text in texts.split(",") if text} for texts in (starts, ends))
    return choose_unit(first, last, count, coarsest)[0]


@pytest.mark.parametrize(
    ("starts", "ends", "count", "expected"),
    [
        ("2000,2010", "2020", 10, "year"),
        ("2000-03,2001-05", "", 10, "month"),
        ("2000-W03,2001-W07", "", 10, "week"),
        ("2000-Q1,2001-Q4", "", 10, "quarter"),
        ("2024-01-05,2024-02-07", "", 10, "day"),
        ("2024-01-05T08:00,2024-01-07T09:00", "", 10, "hour"),
        ("0,1,17", "", 10, "index"),
        ("-44,17", "", 10, "year"),
        # Midnight is a day; first and last days are whole months and years.
        ("2024-01-05 00:00:00,2024-02-07 00:00:00", "", 10, "day"),
        ("2024-01-01,2024-02-01", "2024-05-31", 10, "month"),
        ("2020-01-01,2021-01-01", "2022-12-31", 10, "year"),
        ("2020-01-01,2021-01-01", "2022-01-01", 10, "year"),
        # Too many steps for the dates.
        ("2000-01-05,2005-02-07", "", 10, "month"),
        ("2000-01-05,2005-02-07", "", 5000, "day"),
        ("1900-01-05,2005-02-07", "", 10**6, "month"),
        ("1000-01-05,2005-02-07", "", 10**6, "year"),
        # Years occur as well.
        ("2000-01-05,2024", "", 10, "year"),
        ("-44,2000-05-01", "", 10**6, "year"),
    ],
)
def test_the_unit_follows_the_dates(starts: str, ends: str, count: int, expected: str) -> None:
    assert unit(starts, ends, count) == expected


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        ("2000-01-05,2005-02-07", "", "day"),  # few facts
        ("2024-01-01,2024-02-01", "2024-05-31", "day"),  # whole months
        ("2024-01-01 00:00:00,2024-02-01 00:00:00", "", "day"),
        ("2024-01-05T08:00,2024-01-07T09:00", "", "hour"),
        ("2024-01,2024-07", "", "month"),
        ("2000-01-05,2024", "", "day"),
        ("1900-01-01,2001-01-01", "", "year"),  # days would be too many
        ("1900-01-05,2001-03-01", "", "month"),
    ],
)
def test_a_live_graph_keeps_the_unit_as_written(starts: str, ends: str, expected: str) -> None:
    first, last = ({parse_period(text) for text in texts.split(",") if text} for texts in (starts, ends))
    assert choose_unit(first, last, 4, as_written=True)[0] == expected


def test_points_in_time_need_a_unit_that_all_dates_have() -> None:
    assert unit("2024-01-05,2024-03", coarsest=False) == "day"
    assert unit("2024-01-05,2024-03", coarsest=True) == "month"


def test_reasons() -> None:
    days = {parse_period("2000-01-05"), parse_period("2005-02-07")}
    assert choose_unit(days, set(), 5000) == ("day", "the finest unit of the dates; 1861 steps")
    assert choose_unit(days, set(), 10) == (
        "month",
        "in units of day there would be more than 100 steps for 10 dates; 62 steps",
    )


def test_the_unit_of_given_steps() -> None:
    pandas = pytest.importorskip("pandas")
    for freq, expected in (("MS", "month"), ("D", "day"), ("YS", "year"), ("h", "hour")):
        assert finest_unit([parse_period(step) for step in pandas.date_range("2024-01-01", periods=40, freq=freq)]) == (
            expected
        )
