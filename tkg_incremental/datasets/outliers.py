"""Dates far outside of all others, such as a mistyped year.

The rule: take the distinct dates without the lowest and the highest tenth, and the length of time that they span,
scaled to all dates. A date is an outlier if it lies beyond a gap that is longer than twice this span and than 10 years
(50 years if all dates are years, 1000 steps if they are indices), and if at most 3 dates or 1% of them lie beyond the
gap. Years before -9999 and after 9999 are always outliers. Fewer than 5 distinct dates have no others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tkg_incremental.data.units import Period, convert

_DAYS = 365.2425
_LAST_YEAR = 9999
_FEWEST = 5


def find_outliers(periods: Sequence[Period]) -> list[Period]:
    """The dates far outside of all others; see the module's description for the rule.

    >>> find_outliers([Period("year", year) for year in (*range(2000, 2025), 2102)])
    [Period(unit='year', value=2102)]
    """
    far = [period for period in periods if period.unit == "year" and abs(period.value) > _LAST_YEAR]
    rest = sorted({period: _place(period) for period in periods if period not in far}.items(), key=lambda item: item[1])
    if len(rest) < _FEWEST:
        return far
    places = [place for _, place in rest]
    low, high = math.ceil(0.1 * (len(places) - 1)), math.floor(0.9 * (len(places) - 1))
    span = (places[high] - places[low]) * (len(places) - 1) / (high - low)
    units = {period.unit for period, _ in rest}
    smallest = 1000.0 if units == {"index"} else (50 if units == {"year"} else 10) * _DAYS
    gap = max(2 * span, smallest)
    beyond = max(3, len(places) // 100)
    low, high = min(low, beyond), max(high, len(places) - 1 - beyond)
    below = max((index for index in range(1, low + 1) if places[index] - places[index - 1] > gap), default=0)
    above = min(
        (index for index in range(high + 1, len(places)) if places[index] - places[index - 1] > gap),
        default=len(places),
    )
    return [*far, *(period for period, _ in (*rest[:below], *rest[above:]))]


def _place(period: Period) -> float:
    """Days since the year 0, about."""
    if period.unit == "index":
        return period.value
    if period.unit in ("year", "quarter", "month"):
        return convert(period, "month")[0] * _DAYS / 12
    return convert(period, "day")[0] + _DAYS  # the ordinal 1 is in the year 1
