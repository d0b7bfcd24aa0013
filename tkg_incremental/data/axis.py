"""The time axis: which hours, days, years or plain indices a step stands for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from tkg_incremental.data.dates import parse_instant
from tkg_incremental.data.units import UNITS, check_unit, format_instant

__all__ = ["UNITS", "Labels", "TimeAxis", "parse_instant"]

# An axis longer than this is a mistake in the dates, and snapshots are kept per step.
MAX_STEPS = 2_000_000


class Labels(Sequence[str]):
    """The labels of the steps, formatted on access. Compares equal to a list of the same labels.

    Args:
        axis: The time axis.
    """

    def __init__(self, axis: TimeAxis) -> None:
        self._axis = axis

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[step] for step in range(*index.indices(len(self)))]
        first, last, unit = self._axis.first[index], self._axis.last[index], self._axis.unit
        text = format_instant(first, unit)
        return text if first == last else f"{text}–{format_instant(last, unit)}"

    def __len__(self) -> int:
        return self._axis.num_steps

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labels):
            return self._axis == other._axis or list(self) == list(other)
        return list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = self[:] if len(self) <= 8 else [*self[:3], "…", *self[-3:]]
        return repr(shown)


@dataclass(frozen=True, eq=False)
class TimeAxis:
    """The instants each step covers, in ascending order.

    Args:
        first: First instant of every step, ascending. A :class:`range` needs no memory per step.
        last: Last instant of every step.
        unit: What an instant counts: ``"hour"``, ``"day"``, ``"week"``, ``"month"``, ``"quarter"``, ``"year"`` or
            ``"index"``.

    >>> axis = TimeAxis((1996, 1997, 1998), (1996, 1997, 1999), "year")
    >>> axis.labels
    ['1996', '1997', '1998–1999']
    >>> axis.step_of("1999-05-01")
    2
    """

    first: Sequence[int]
    last: Sequence[int]
    unit: str = "year"

    def __post_init__(self) -> None:
        check_unit(self.unit)
        if not self.first or len(self.first) != len(self.last):
            raise ValueError(
                f"first and last must have one entry per step (got {len(self.first)} and {len(self.last)})"
            )

    @classmethod
    def from_instants(cls, instants: Iterable[int], unit: str = "year") -> TimeAxis:
        """One step per instant that occurs."""
        ordered = tuple(sorted(set(instants)))
        return cls(ordered, ordered, unit)

    @classmethod
    def from_range(cls, first: Any, last: Any, unit: str = "year") -> TimeAxis:
        """One step per unit from ``first`` to ``last``, both included.

        Args:
            first: The first instant: an integer of ``unit``, or a date.
            last: The last instant, likewise.
            unit: What an instant counts.

        >>> TimeAxis.from_range("2023-11", "2024-02", "month").labels
        ['2023-11', '2023-12', '2024-01', '2024-02']
        """
        begin, end = (when if isinstance(when, int) else parse_instant(when, unit) for when in (first, last))
        if begin > end:
            raise ValueError(f"last must not be before first (got {first} … {last})")
        if end - begin >= MAX_STEPS:
            raise ValueError(f"an axis must have at most {MAX_STEPS} steps (got {end - begin + 1} of unit {unit!r})")
        steps = range(begin, end + 1)
        return cls(steps, steps, unit)

    @property
    def num_steps(self) -> int:
        return len(self.first)

    @property
    def labels(self) -> Labels:
        """The text of every step: ``"1997"`` or ``"1998–1999"``."""
        return Labels(self)

    def step_of(self, when: Any, dayfirst: bool = False, date_format: str | None = None) -> int:
        """The step that covers a date, a year or (``unit="index"``) an index, or that has a label.

        Args:
            when: The date, not coarser than the unit of the axis; or a label such as ``"1998–1999"``.
            dayfirst: Read ``03/04/2024`` as 3 April.
            date_format: See :func:`~tkg_incremental.data.parse_instant`.
        """
        instant = parse_instant(_start_of(when), self.unit, dayfirst, date_format)
        if not self.first[0] <= instant <= self.last[-1]:
            reach = f"{format_instant(self.first[0], self.unit)} … {format_instant(self.last[-1], self.unit)}"
            raise ValueError(f"time must lie in {reach} (got {str(when)!r})")
        step = bisect_right(self.first, instant) - 1
        if _start_of(when) != when and self.labels[step] != when:
            raise ValueError(f"time must be a date or the label of a step, such as {self.labels[step]} (got {when!r})")
        return step

    def is_after(self, when: Any) -> bool:
        """Whether a date is after the last step.

        Args:
            when: The date, not coarser than the unit of the axis.
        """
        return parse_instant(_start_of(when), self.unit) > self.last[-1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimeAxis):
            return NotImplemented
        # A range and a tuple of the same instants are the same axis.
        return self.unit == other.unit and all(
            mine is theirs or (len(mine) == len(theirs) and tuple(mine) == tuple(theirs))
            for mine, theirs in ((self.first, other.first), (self.last, other.last))
        )

    def __hash__(self) -> int:
        return hash((self.unit, len(self.first), self.first[0], self.last[-1]))


def _start_of(when: Any) -> Any:
    """The first part of the label of a step, or the date itself."""
    return when.partition("–")[0] if isinstance(when, str) else when
