"""Units of time: an instant is an integer count of a unit."""

from __future__ import annotations

import datetime
from typing import NamedTuple

#: Units of a time axis, finest first. ``"index"`` counts steps that have no date.
UNITS = ("hour", "day", "week", "month", "quarter", "year", "index")

#: Position of a unit in the order from fine to coarse.
RANK = {unit: rank for rank, unit in enumerate(UNITS)}

_PER_YEAR = {"month": 12, "quarter": 4, "year": 1}
_HOURS = 24


class Period(NamedTuple):
    """A date in the unit in which it is written: ``2024-03`` is ``Period("month", 2024 * 12 + 2)``."""

    unit: str
    value: int


def check_unit(unit: str, *more: str) -> None:
    """Raises an error if ``unit`` is neither one of :data:`UNITS` nor one of ``more``."""
    if unit not in UNITS and unit not in more:
        raise ValueError(f"unit must be one of {(*more, *UNITS)} (got {unit!r})")


def convert(period: Period, unit: str) -> tuple[int, int]:
    """First and last instant of ``unit`` that a period covers.

    A period finer than ``unit`` lies in one instant. A coarser one covers several: a year has 12 months.

    >>> convert(Period("year", 2024), "quarter")
    (8096, 8099)
    """
    if period.unit == unit:
        return period.value, period.value
    if "index" in (period.unit, unit):
        raise ValueError(f"an instant of unit {period.unit!r} has no place on an axis of unit {unit!r}")
    if period.unit in _PER_YEAR and unit in _PER_YEAR:
        # Whole numbers per year, so that years before 1 work, too.
        per, target = _PER_YEAR[period.unit], _PER_YEAR[unit]
        return period.value * target // per, ((period.value + 1) * target - 1) // per
    first, last = _days(period)
    if unit == "hour":
        return first * _HOURS, last * _HOURS + _HOURS - 1
    return _of_day(first, unit), _of_day(last, unit)


def format_instant(instant: int, unit: str) -> str:
    """The instant as text: ``2024-01-05 08:00``, ``2024-01-05``, ``2024-W03``, ``2024-01``, ``2024-Q2`` or a number."""
    if unit in ("year", "index"):
        return str(instant)
    if unit in _PER_YEAR:
        year, place = divmod(instant, _PER_YEAR[unit])
        return f"{year:04d}-{place + 1:02d}" if unit == "month" else f"{year:04d}-Q{place + 1}"
    if unit == "week":
        year, week, _ = datetime.date.fromordinal(instant * 7 + 1).isocalendar()
        return f"{year:04d}-W{week:02d}"
    if unit == "day":
        return datetime.date.fromordinal(instant).isoformat()
    day, hour = divmod(instant, _HOURS)
    return f"{datetime.date.fromordinal(day).isoformat()} {hour:02d}:00"


def _days(period: Period) -> tuple[int, int]:
    """Ordinals of the first and the last day of a period."""
    unit, value = period
    if unit == "hour":
        return value // _HOURS, value // _HOURS
    if unit == "day":
        return value, value
    if unit == "week":  # 0001-01-01, the first ordinal, is a Monday
        return value * 7 + 1, value * 7 + 7
    per = _PER_YEAR[unit]
    return _first_day(value, per), _first_day(value + 1, per) - 1


def _first_day(value: int, per_year: int) -> int:
    year, place = divmod(value, per_year)
    if (year, place) == (datetime.MAXYEAR + 1, 0):
        return datetime.date.max.toordinal() + 1
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise ValueError(f"years {datetime.MINYEAR} … {datetime.MAXYEAR} have days (got the year {year})")
    return datetime.date(year, place * (12 // per_year) + 1, 1).toordinal()


def _of_day(ordinal: int, unit: str) -> int:
    if unit == "day":
        return ordinal
    if unit == "week":
        return (ordinal - 1) // 7
    date = datetime.date.fromordinal(ordinal)
    return (date.year * 12 + date.month - 1) * _PER_YEAR[unit] // 12
