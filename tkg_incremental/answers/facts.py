"""The facts behind the answers: which are known, and which entities have the right type."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tkg_incremental.ops.answers import FIRST, HEAD, LAST, REL, TAIL, Side


class Interval(NamedTuple):
    """First and last step of a fact; ``last`` is :obj:`None` for a fact without an end."""

    first: int
    last: int | None

    def covers(self, step: int) -> bool:
        return self.first <= step and (self.last is None or step <= self.last)


class KnownFacts(Protocol):
    """Where answers are looked up."""

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        """All intervals of a triple."""

    def answers(self, given: int, rel: int, side: Side) -> dict[int, list[Interval]]:
        """Entities on ``side`` of facts that hold at any step, with their intervals."""

    def is_closed(self, rel: int) -> bool:
        """Whether a known fact of a relation holds at no other steps than those of its intervals. It may, where facts
        were left out, and where facts are events that happen again."""

    def type_members(self, rel: int, side: Side) -> Tensor:
        """``[n]`` entities that ever were on ``side`` of a relation, ascending."""

    def answers_per_query(self, rel: int, side: Side) -> float:
        """Mean number of simultaneous answers of the queries of a relation that have one: 1 for an office."""

    def relations_of_type(self, head: int, tail: int) -> list[int]:
        """Relations with ``head`` among their heads and ``tail`` among their tails."""


class Marks(NamedTuple):
    """What is known about candidates.

    Args:
        known: ``[n]`` the fact holds.
        other: ``[n]`` the fact holds at other steps.
        is_closed: Whether a fact that holds at other steps is over or has not begun, see :meth:`KnownFacts.is_closed`.
    """

    known: Tensor
    other: Tensor
    is_closed: bool

    @property
    def over(self) -> Tensor:
        """``[n]`` the fact is over or has not begun."""
        return self.other if self.is_closed else torch.zeros_like(self.other)

    @property
    def open(self) -> Tensor:
        """``[n]`` the facts do not say whether it holds."""
        return ~(self.known | self.over)


class FactsOfQuestion(NamedTuple):
    """What is known about the answers to a question at a step.

    Args:
        known: Entities of facts that hold, with their intervals.
        other: Entities of facts that hold at other steps, with their intervals.
        is_closed: As of :class:`Marks`.
    """

    known: dict[int, Interval]
    other: dict[int, list[Interval]]
    is_closed: bool

    @classmethod
    def at(cls, facts: KnownFacts, given: int, rel: int, side: Side, step: int) -> FactsOfQuestion:
        """Looks up the answers to a question."""
        known, other = {}, {}
        for entity, intervals in facts.answers(given, rel, side).items():
            holds = next((interval for interval in intervals if interval.covers(step)), None)
            if holds is None:
                other[entity] = intervals
            else:
                known[entity] = holds
        return cls(known, other, facts.is_closed(rel))

    def of(self, entity: int) -> list[Interval]:
        """The intervals of an answer, as far as they count."""
        return [self.known[entity]] if entity in self.known else self.other.get(entity, [])

    def marks(self, candidates: Tensor) -> Marks:
        """What is known about candidates ``[n]``, ascending."""
        return Marks(among(candidates, list(self.known)), among(candidates, list(self.other)), self.is_closed)


def among(candidates: Tensor, entities: list[int]) -> Tensor:
    """Which candidates ``[n]``, ascending, are among a few entities."""
    found, wanted = torch.zeros(len(candidates), dtype=torch.bool), torch.tensor(entities, dtype=torch.long)
    if len(candidates):
        place = torch.searchsorted(candidates, wanted).clamp(max=len(candidates) - 1)
        found[place[candidates[place] == wanted]] = True
    return found


class TensorFacts:
    """Known facts in memory.

    Args:
        facts: ``[F, 5]`` merged intervals: head, rel, tail, first, last.
        num_steps: Number of steps; a fact that holds at the last one has no end yet.
        is_complete: Whether no intervals of these facts were left out, as those of test facts are.
    """

    def __init__(self, facts: Tensor, num_steps: int, is_complete: bool = False) -> None:
        self.facts, self.num_steps, self.is_complete = facts.long(), num_steps, is_complete
        self._members: dict[tuple[int, Side], Tensor] = {}
        self._per_query: dict[tuple[int, Side], float] = {}

    def _interval(self, row: Tensor) -> Interval:
        first, last = int(row[FIRST]), int(row[LAST])
        return Interval(first, None if last >= self.num_steps - 1 else last)

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        wanted = torch.tensor([head, rel, tail])
        return [self._interval(row) for row in self.facts[(self.facts[:, :3] == wanted).all(1)]]

    def answers(self, given: int, rel: int, side: Side) -> dict[int, list[Interval]]:
        f, found = self.facts, dict[int, list[Interval]]()
        for row in f[(f[:, REL] == rel) & (f[:, TAIL if side == "head" else HEAD] == given)]:
            found.setdefault(int(row[HEAD if side == "head" else TAIL]), []).append(self._interval(row))
        return found

    def is_closed(self, rel: int) -> bool:
        rows = self.facts[self.facts[:, REL] == rel]
        return self.is_complete and bool((rows[:, FIRST] < rows[:, LAST]).any())

    def type_members(self, rel: int, side: Side) -> Tensor:
        if (rel, side) not in self._members:
            column = self.facts[self.facts[:, REL] == rel, HEAD if side == "head" else TAIL]
            self._members[rel, side] = torch.unique(column)
        return self._members[rel, side]

    def answers_per_query(self, rel: int, side: Side) -> float:
        if (rel, side) not in self._per_query:
            given = TAIL if side == "head" else HEAD
            rows = self.facts[self.facts[:, REL] == rel][:, [given, FIRST, LAST]]
            self._per_query[rel, side] = mean_overlap(rows)
        return self._per_query[rel, side]

    def relations_of_type(self, head: int, tail: int) -> list[int]:
        heads = set(self.facts[self.facts[:, HEAD] == head, REL].tolist())
        tails = set(self.facts[self.facts[:, TAIL] == tail, REL].tolist())
        return sorted(heads & tails)


def mean_overlap(rows: Tensor) -> float:
    """Mean number of intervals that hold at a time at which one does, within groups.

    Args:
        rows: ``[n, 3]`` group, first and last step.

    >>> mean_overlap(torch.tensor([[0, 1, 4], [0, 5, 8], [1, 1, 4], [1, 1, 4]]))
    1.3333333333333333
    """
    if not len(rows):
        return 1.0
    union, end, group = 0, -1, None
    for own, first, last in sorted(rows.tolist()):
        if own != group:
            group, end = own, -1
        union += max(0, last - max(first, end + 1) + 1)
        end = max(end, last)
    return float((rows[:, 2] - rows[:, 1] + 1).sum()) / max(1, union)
