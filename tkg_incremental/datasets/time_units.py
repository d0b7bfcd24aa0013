"""Choosing the unit of the time axis from the dates."""

from __future__ import annotations

import datetime
from collections.abc import Collection

from tkg_incremental.data.units import RANK, Period, convert

#: An axis chosen from the data has at most this many steps, ten years of days.
MAX_STEPS = 4000
#: The same for a graph that is updated in the unit of its dates, fifty years of days.
MAX_STEPS_AS_WRITTEN = 20_000

# An axis this short is fine even for a few facts.
_FEW_STEPS = 100
# Integers below this are steps, not years.
_FIRST_YEAR = 1000


def choose_unit(
    starts: Collection[Period], ends: Collection[Period], count: int, coarsest: bool = False, as_written: bool = False
) -> tuple[str, str]:
    """Chooses the finest unit in which dates are written such that the number of steps is sensible.

    Sensible are at most 4000 steps, and on average at least one start or end per step once there are more than 100
    steps. Where no unit in which dates are written is sensible, the next coarser one of day, month and year is chosen
    that is. Times at midnight count as days. Days count as months if all starts are the first of a month and all ends
    are, or all ends are the last of a month; likewise months as years.

    Args:
        starts: The distinct starts.
        ends: The distinct ends.
        count: Number of starts and ends, with repetitions.
        coarsest: Start from the coarsest unit in which dates are written: a point in time has no finer one.
        as_written: Keep the finest unit in which dates are written for up to 20,000 steps, whatever the number of facts
            and even if all days begin a month: a graph that is updated every day needs days. A step without changes
            costs such a graph next to nothing, while a training step by step trains and evaluates at each.

    Returns:
        The unit, and why it was chosen.
    """
    periods = {*starts, *ends}
    units = sorted({period.unit for period in periods}, key=RANK.__getitem__)
    if units == ["year"] and all(0 <= period.value < _FIRST_YEAR for period in periods):
        return "index", f"all times are integers below {_FIRST_YEAR}"
    written = units[-1] if coarsest else units[0]
    whole = _whole(starts, ends, written) if written in ("hour", "day") else written
    if not as_written:
        written = whole
    elif whole != written:
        written = "day"  # midnights
    units = [written, *(unit for unit in units if RANK[unit] > RANK[written])]
    units = [unit for unit in units if unit == written or RANK[unit] >= RANK[whole]]
    units += [unit for unit in ("day", "month", "year") if RANK[unit] > RANK[units[-1]] and RANK[unit] >= RANK[whole]]
    limit = MAX_STEPS_AS_WRITTEN if as_written else min(MAX_STEPS, max(_FEW_STEPS, count))
    for unit in units:
        steps = _num_steps(periods, unit)
        if steps is not None and (steps <= limit or unit == units[-1]):
            break
    if unit == written:
        return unit, f"the finest unit of the dates; {steps} step{'s' * (steps != 1)}"
    return unit, f"in units of {written} there would be more than {limit} steps for {count} dates; {steps} steps"


def finest_unit(periods: Collection[Period]) -> str:
    """The finest unit in which dates are written, with whole days, months and years recognised."""
    finest = min((period.unit for period in periods), key=RANK.__getitem__)
    return _whole(periods, [], finest) if finest in ("hour", "day") else finest


def _whole(starts: Collection[Period], ends: Collection[Period], unit: str) -> str:
    """A coarser unit than hour or day, if dates have whole ones."""
    if any(period.unit == "hour" and period.value % 24 for period in (*starts, *ends)):
        return unit

    def days(periods: Collection[Period], shift: int = 0) -> list[datetime.date]:
        ordinals = {convert(period, "day")[0] + shift for period in periods if period.unit in ("hour", "day")}
        return [datetime.date.fromordinal(min(day, datetime.date.max.toordinal())) for day in ordinals]

    first = days(starts)
    for last in (days(ends), days(ends, shift=1)):
        both = [*first, *last]
        if all(day.day == 1 for day in both):
            return "year" if all(day.month == 1 for day in both) else "month"
    return "day"


def _num_steps(periods: Collection[Period], unit: str) -> int | None:
    """Number of units from the first to the last date; none if years before 1 have no such unit."""
    try:
        spans = [convert(period, unit) for period in periods]
    except (ValueError, OverflowError):
        return None
    return max(last for _, last in spans) - min(first for first, _ in spans) + 1
