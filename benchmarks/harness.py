"""Times some work and its reference in turn; measurements and aims."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    from benchmarks.lab import Lab

Work = Callable[[], Any]


class Unavailable(RuntimeError):
    """Data or a package that a benchmark needs is not available."""


@dataclass
class Timing:
    """Seconds of every round.

    Args:
        seconds: Of the work.
        reference: Of the reference, if there is one, right after the work of the same round.
    """

    seconds: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """Time of the work divided by that of the reference, the median over the rounds."""
        return median(a / b for a, b in zip(self.seconds, self.reference, strict=True)) if self.reference else None


def clock() -> float:
    """Seconds that this process has worked, if it has one thread: other processes do not count. With more threads,
    seconds on the wall."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def seconds_of(work: Work) -> float:
    begin = clock()
    work()
    return clock() - begin


def interleave(
    work: Work,
    reference: Work | None = None,
    rounds: tuple[int, int] = (3, 25),
    budget: float = 10.0,
    warm: bool = True,
) -> Timing:
    """Times the work and its reference in turn (A B A B …), so that both see the same load of the machine.

    Args:
        work: What to time.
        reference: What to compare it with.
        rounds: Minimum and maximum number of rounds.
        budget: After this many seconds no further round begins, beyond the minimum.
        warm: Run both once before, untimed.
    """
    timing = Timing()
    if warm:
        work()
        if reference is not None:
            reference()
    begin = time.perf_counter()
    least, most = rounds
    while len(timing.seconds) < most:
        timing.seconds.append(seconds_of(work))
        if reference is not None:
            timing.reference.append(seconds_of(reference))
        if len(timing.seconds) >= least and time.perf_counter() - begin > budget:
            break
    return timing


@dataclass(frozen=True)
class Measurement:
    """The result of one benchmark.

    Args:
        work: Description of the work, with its sizes.
        value: The median, in ``unit``.
        unit: ``"s"``, ``"rows/s"``, ``"MB"``, …
        reference: Description of the reference.
        reference_value: The reference's median, in ``unit``.
        ratio: To the reference, from the same run.
        ratio_of: Kind of ratio: ``"cost"`` (ours over theirs, lower is better) or ``"speed"`` (the reverse).
        rounds: Number of rounds of the medians.
    """

    work: str
    value: float
    unit: str
    reference: str = ""
    reference_value: float | None = None
    ratio: float | None = None
    ratio_of: Literal["cost", "speed"] = "cost"
    rounds: int = 1


def in_seconds(work: str, timing: Timing, reference: str = "") -> Measurement:
    """A measurement of time."""
    bare = median(timing.reference) if timing.reference else None
    return Measurement(work, median(timing.seconds), "s", reference, bare, timing.ratio, rounds=len(timing.seconds))


def in_rate(work: str, timing: Timing, items: int, unit: str, reference: str, peer: bool = False) -> Measurement:
    """A measurement of throughput; for a ``peer``, the ratio is our speed over its speed."""
    ours, theirs, ratio = items / median(timing.seconds), items / median(timing.reference), timing.ratio
    assert ratio is not None
    rounds = len(timing.seconds)
    if peer:
        return Measurement(work, ours, unit, reference, theirs, 1 / ratio, "speed", rounds)
    return Measurement(work, ours, unit, reference, theirs, ratio, "cost", rounds)


@dataclass(frozen=True)
class Aim:
    """A bound on a measurement's value or ratio.

    Args:
        of: ``"value"`` or ``"ratio"``.
        limit: The bound.
        at_most: Whether the bound is an upper one.
    """

    of: Literal["value", "ratio"]
    limit: float
    at_most: bool = True

    def is_met(self, measurement: Measurement) -> bool:
        found = measurement.value if self.of == "value" else measurement.ratio
        assert found is not None, f"'{measurement.work}' has an aim for its {self.of}, and no {self.of}"
        return found <= self.limit if self.at_most else found >= self.limit

    def describe(self, unit: str) -> str:
        sign = "≤" if self.at_most else "≥"
        return f"{sign} {self.limit:,g} {unit}" if self.of == "value" else f"{sign} {self.limit:,g}×"


@dataclass(frozen=True)
class Benchmark:
    """One row of the table.

    Args:
        name: Family and name, as in ``training/tie-de``; ``--only`` selects by it.
        run: Function that measures.
        aims: Bounds that it should meet.
        published: Time of the released research code, without the page faults of fresh memory.
    """

    name: str
    run: Callable[[Lab], Measurement]
    aims: tuple[Aim, ...] = ()
    published: str = ""


def at_most(limit: float) -> Aim:
    """An upper bound of the value."""
    return Aim("value", limit)


def at_least(limit: float) -> Aim:
    """A lower bound of the value."""
    return Aim("value", limit, at_most=False)


def ratio_at_most(limit: float) -> Aim:
    """An upper bound of the ratio."""
    return Aim("ratio", limit)


def ratio_at_least(limit: float) -> Aim:
    """A lower bound of the ratio."""
    return Aim("ratio", limit, at_most=False)
