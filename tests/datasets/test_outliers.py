import pytest

from tkg_incremental.data.dates import parse_period
from tkg_incremental.data.units import Period
from tkg_incremental.datasets.outliers import find_outliers

YEARS = [Period("year", year) for year in range(2000, 2025)]


@pytest.mark.parametrize("year", [20121, 2102, 202, 1024, -2012])
def test_a_mistyped_year(year: int) -> None:
    assert find_outliers([*YEARS, Period("year", year)]) == [Period("year", year)]


def test_several_at_both_ends() -> None:
    wrong = [Period("year", year) for year in (202, 2102, 20121)]
    assert set(find_outliers([*YEARS, *wrong])) == set(wrong)


@pytest.mark.parametrize("text", ["2042-05-01", "2204-05-01", "1924-05-01"])
def test_a_mistyped_day(text: str) -> None:
    days = [parse_period(f"2024-{month:02d}-{day:02d}") for month in range(1, 13) for day in (1, 15)]
    assert find_outliers([*days, parse_period(text)]) == [parse_period(text)]


@pytest.mark.parametrize(
    "periods",
    [
        YEARS,
        [*YEARS, Period("year", 2042)],
        [Period("year", year) for year in (1066, 1492, 1789, 1914, 1945, 2001)],
        [Period("year", year) for year in (1990, 2500)],
        [parse_period(f"2024-01-{day:02d}") for day in range(1, 20)] + [parse_period("2026-06-01")],
        [Period("index", step) for step in (0, 1, 2, 3, 4, 5, 100)],
        [],
    ],
)
def test_dates_that_are_fine(periods: list[Period]) -> None:
    assert find_outliers(periods) == []


def test_far_years_and_indices() -> None:
    assert find_outliers([Period("year", 20121), Period("year", 2012)]) == [Period("year", 20121)]
    far = Period("index", 10**6)
    assert find_outliers([*(Period("index", step) for step in range(10)), far]) == [far]
