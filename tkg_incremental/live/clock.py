"""The time axis of a live graph: one step per instant since its first one."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.data.dates import parse_instant
from tkg_incremental.data.units import format_instant


@dataclass(frozen=True)
class GraphClock:
    """Steps of a live graph.

    Args:
        origin: Instant of the first step.
        now: Instant of the last step.
        unit: Unit of time.
    """

    origin: int
    now: int
    unit: str

    @property
    def num_steps(self) -> int:
        return self.now - self.origin + 1

    @property
    def axis(self) -> TimeAxis:
        return TimeAxis(range(self.origin, self.now + 1), range(self.origin, self.now + 1), self.unit)

    @property
    def labels(self) -> Sequence[str]:
        return self.axis.labels

    def instant(self, when: Any) -> int:
        """The instant of a date."""
        return parse_instant(when, self.unit)

    def step(self, instant: int) -> int:
        """The step of an instant, as far as the graph reaches."""
        return min(max(instant, self.origin), self.now) - self.origin

    def step_of(self, when: Any) -> int:
        """The step of a date, as far as the graph reaches."""
        instant = self.instant(when)
        if instant < self.origin:
            first = format_instant(self.origin, self.unit)
            raise ValueError(f"time must not be before the graph's first step, {first} (got {when!r})")
        return self.step(instant)

    def is_after(self, when: Any) -> bool:
        """Whether a date is after the last update."""
        return self.instant(when) > self.now


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
