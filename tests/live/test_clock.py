"""Steps and dates of a live graph."""

from __future__ import annotations

import pytest

from tkg_incremental.data.dates import parse_instant
from tkg_incremental.live.clock import GraphClock

CLOCK = GraphClock(parse_instant("2026-01-01", "day"), parse_instant("2026-01-31", "day"), "day")


def test_steps() -> None:
    assert (CLOCK.num_steps, CLOCK.labels[0], CLOCK.labels[30]) == (31, "2026-01-01", "2026-01-31")
    assert [CLOCK.step_of(date) for date in ("2026-01-01", "2026-01-02", "2026-01-31")] == [0, 1, 30]
    assert CLOCK.until(CLOCK.now + 2).num_steps == 33


def test_instants_outside_are_the_nearest_step() -> None:
    assert (CLOCK.step(CLOCK.origin - 5), CLOCK.step(CLOCK.now + 5)) == (0, 30)


def test_dates_outside() -> None:
    assert CLOCK.step_of("2026-02-03") == 30
    assert CLOCK.is_after("2026-02-03")
    assert not CLOCK.is_after("2026-01-31")
    with pytest.raises(ValueError, match=r"must not be before the graph's first step, 2026-01-01 \(got '2025-12-31'\)"):
        CLOCK.step_of("2025-12-31")
