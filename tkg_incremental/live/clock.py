"""The time axis of a live graph: one step per instant since its first one."""

from __future__ import annotations

import datetime
from typing import Any

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.data.dates import parse_instant
from tkg_incremental.data.units import format_instant


class GraphClock(TimeAxis):
    """The steps of a live graph. Dates after the last one stand for it.

    Args:
        origin: Instant of the first step.
        now: Instant of the last step. One before the first step counts as the first.
        unit: Unit of time.
    """

    def __init__(self, origin: int, now: int, unit: str) -> None:
        steps = range(origin, max(origin, now) + 1)
        super().__init__(steps, steps, unit)

    @property
    def origin(self) -> int:
        return self.first[0]

    @property
    def now(self) -> int:
        return self.last[-1]

    def until(self, now: int) -> GraphClock:
        """The steps up to another instant."""
        return GraphClock(self.origin, now, self.unit)

    def instant(self, when: Any) -> int:
        """The instant of a date."""
        return parse_instant(when, self.unit)

    def step(self, instant: int) -> int:
        """The step of an instant, as far as the graph reaches."""
        return min(max(instant, self.origin), self.now) - self.origin

    def step_of(self, when: Any, dayfirst: bool = False, date_format: str | None = None) -> int:
        """The step of a date, as far as the graph reaches."""
        instant = parse_instant(when, self.unit, dayfirst, date_format)
        if instant < self.origin:
            first = format_instant(self.origin, self.unit)
            raise ValueError(f"time must not be before the graph's first step, {first} (got {when!r})")
        return self.step(instant)


def recorded_instant(when: Any) -> int:
    """Microseconds since 1970 (UTC) of a time: a :class:`datetime.datetime` or ISO text. A date stands for its end, and
    a time without an offset is in UTC.

    >>> recorded_instant("1970-01-01T00:00:01")
    1000000
    >>> recorded_instant("1970-01-01")
    86399999999
    """
    text = when.isoformat() if isinstance(when, datetime.date) else str(when).strip()
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        if len(text) == 10:
            time += datetime.timedelta(days=1, microseconds=-1)
    except (ValueError, OverflowError):
        expected = "a time such as 2026-11-18T08:30 or the number of a release"
        raise ValueError(f"as_of must be {expected} (got {when!r})") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return (time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)
