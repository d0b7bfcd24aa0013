"""The time axis: which years, days or plain indices a step stands for."""

from __future__ import annotations

import datetime
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

UNITS = ("year", "day", "index")

_YEAR = re.compile(r"-?\d{1,6}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_OPEN_DAY = re.compile(r"(-?\d{1,4})-(?:\d{2}|##)-(?:\d{2}|##)")


def parse_instant(text: str, unit: str) -> int:
    """Reads a point in time as an integer of ``unit``.

    Args:
        text: A year (``"2021"``), an ISO date (``"2021-01-20"``) or, for ``unit="index"``, an integer.
        unit: ``"year"``, ``"day"`` (proleptic ordinal) or ``"index"``.

    >>> parse_instant("2021-01-20", "year")
    2021
    """
    text = text.strip()
    if unit == "day":
        if _DATE.fullmatch(text):
            return _date(text).toordinal()
        raise ValueError(f"expected a date YYYY-MM-DD (got {text!r})")
    if _YEAR.fullmatch(text):
        return int(text)
    if unit == "year":
        if _DATE.fullmatch(text):
            return _date(text).year
        match = _DATE_OPEN_DAY.fullmatch(text)
        if match:
            return int(match.group(1))
        raise ValueError(f"expected a year or a date YYYY-MM-DD (got {text!r})")
    raise ValueError(f"expected an integer (got {text!r})")


def _date(text: str) -> datetime.date:
    try:
        return datetime.date(*map(int, text.split("-")))
    except ValueError as error:
        raise ValueError(f"expected a date that exists (got {text!r}: {error})") from None


@dataclass(frozen=True)
class TimeAxis:
    """The instants each step covers, in order and without gaps that matter.

    Args:
        first: First instant of every step, ascending.
        last: Last instant of every step.
        unit: What an instant counts: ``"year"``, ``"day"`` or ``"index"``.

    >>> axis = TimeAxis((1996, 1997, 1998), (1996, 1997, 1999), "year")
    >>> axis.labels
    ['1996', '1997', '1998–1999']
    >>> axis.step_of("1999-05-01")
    2
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    unit: str = "year"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit must be one of {UNITS} (got {self.unit!r})")
        if not self.first or len(self.first) != len(self.last):
            raise ValueError(
                f"first and last must have one entry per step (got {len(self.first)} and {len(self.last)})"
            )

    @classmethod
    def from_instants(cls, instants: Sequence[int], unit: str = "year") -> TimeAxis:
        """One step per instant."""
        ordered = tuple(sorted(set(instants)))
        return cls(ordered, ordered, unit)

    @property
    def num_steps(self) -> int:
        return len(self.first)

    @cached_property
    def labels(self) -> list[str]:
        """What a person reads: ``"1997"`` or ``"1998–1999"``."""
        return [
            self._show(a) if a == b else f"{self._show(a)}–{self._show(b)}"
            for a, b in zip(self.first, self.last, strict=True)
        ]

    def step_of(self, when: str | int) -> int:
        """The step that covers a date, a year or (``unit="index"``) an index."""
        instant = parse_instant(str(when), self.unit)
        if not self.first[0] <= instant <= self.last[-1]:
            raise ValueError(
                f"time must lie in {self._show(self.first[0])} … {self._show(self.last[-1])} (got {when!r})"
            )
        return bisect_right(self.first, instant) - 1

    def _show(self, instant: int) -> str:
        return datetime.date.fromordinal(instant).isoformat() if self.unit == "day" else str(instant)
