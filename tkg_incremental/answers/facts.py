"""The facts behind the answers: which are known, and which entities have the right type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tkg_incremental.answers.further import further_answers
from tkg_incremental.ops.answers import FIRST, HEAD, LAST, REL, TAIL, Side, query_columns
from tkg_incremental.ops.keys import find, pack


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

    def some_members(self, rel: int, side: Side, size: int) -> Tensor:
        """At most ``size`` of the type members, ascending."""

    def answers_per_query(self, rel: int, side: Side) -> float:
        """Mean number of simultaneous answers of the queries of a relation that have one: 1 for an office."""

    def further_answers(self, rel: int, side: Side) -> Tensor:
        """Expected number of answers beyond those that are known, see
        :func:`~tkg_incremental.answers.further.further_answers`."""

    def relations_of_type(self, head: int, tail: int) -> list[int]:
        """Relations with ``head`` among their heads and ``tail`` among their tails."""


class Marks(NamedTuple):
    """What is known about candidates.

    Args:
        known: ``[*, n]`` the fact holds.
        other: ``[*, n]`` the fact holds at other steps.
        is_closed: Whether a fact that holds at other steps is over or has not begun, see :meth:`KnownFacts.is_closed`.
    """

    known: Tensor
    other: Tensor
    is_closed: bool

    @property
    def over(self) -> Tensor:
        """``[*, n]`` the fact is over or has not begun."""
        return self.other if self.is_closed else torch.zeros_like(self.other)

    @property
    def open(self) -> Tensor:
        """``[*, n]`` the facts do not say whether it holds."""
        return ~(self.known | self.over)


def marks_of(
    answers: Sequence[Mapping[int, Sequence[Interval]]], steps: Sequence[int], candidates: Tensor, is_closed: bool
) -> Marks:
    """What is known about the same candidates in several questions about one relation, ``[B, n]``.

    Args:
        answers: The answers to each question at any step, from :meth:`KnownFacts.answers`.
        steps: The step of each question.
        candidates: ``[n]``, ascending.
        is_closed: As of :class:`Marks`.
    """
    found: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for row, (step, entities) in enumerate(zip(steps, answers, strict=True)):
        for entity, intervals in entities.items():
            found[any(interval.covers(step) for interval in intervals)].append((row, entity))
    pairs = (torch.tensor(some, dtype=torch.long).view(-1, 2).t().contiguous() for some in found.values())
    known, other = (mark(candidates, rows, entities, len(steps)) for rows, entities in pairs)
    return Marks(known, other, is_closed)


def mark(candidates: Tensor, row: Tensor, entity: Tensor, num_rows: int) -> Tensor:
    """Which candidates are among the entities of each row, ``[num_rows, n]``.

    Args:
        candidates: ``[n]``, ascending.
        row: ``[m]``.
        entity: ``[m]`` its entity; one that is no candidate counts for nothing.
        num_rows: Number of rows.
    """
    found = torch.zeros(num_rows, len(candidates), dtype=torch.bool)
    place, is_there = find(candidates, entity)
    found[row[is_there], place[is_there]] = True
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
        self._further: dict[tuple[int, Side], Tensor] = {}
        self._closed: dict[int, bool] = {}
        # For each side the facts by given entity and relation, and those two as one number.
        self._sorted: dict[Side, tuple[Tensor, Tensor]] = {}

    def _interval(self, first: int, last: int) -> Interval:
        return Interval(first, None if last >= self.num_steps - 1 else last)

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        return self.answers(head, rel, "tail").get(tail, [])

    def answers(self, given: int, rel: int, side: Side) -> dict[int, list[Interval]]:
        column, answer = query_columns(side)
        if side not in self._sorted:
            keys = pack([self.facts[:, column], self.facts[:, REL]], [2**31, 2**31])
            order = torch.argsort(keys, stable=True)
            self._sorted[side] = self.facts[order], keys[order]
        facts, keys = self._sorted[side]
        found, key = dict[int, list[Interval]](), (given << 31) + rel
        low, high = torch.searchsorted(keys, torch.tensor([key, key + 1])).tolist()
        for fact in facts[low:high].tolist():
            found.setdefault(fact[answer], []).append(self._interval(fact[FIRST], fact[LAST]))
        return found

    def is_closed(self, rel: int) -> bool:
        if rel not in self._closed:
            rows = self.facts[self.facts[:, REL] == rel]
            self._closed[rel] = self.is_complete and bool((rows[:, FIRST] < rows[:, LAST]).any())
        return self._closed[rel]

    def type_members(self, rel: int, side: Side) -> Tensor:
        if (rel, side) not in self._members:
            column = self.facts[self.facts[:, REL] == rel, HEAD if side == "head" else TAIL]
            self._members[rel, side] = torch.unique(column)
        return self._members[rel, side]

    def some_members(self, rel: int, side: Side, size: int) -> Tensor:
        members = self.type_members(rel, side)
        return members[:: max(1, -(-len(members) // size))]

    def answers_per_query(self, rel: int, side: Side) -> float:
        if (rel, side) not in self._per_query:
            self._per_query[rel, side] = mean_overlap(self._spans(rel, side))
        return self._per_query[rel, side]

    def further_answers(self, rel: int, side: Side) -> Tensor:
        if (rel, side) not in self._further:
            self._further[rel, side] = further_answers(self._spans(rel, side), self.num_steps)
        return self._further[rel, side]

    def _spans(self, rel: int, side: Side) -> Tensor:
        """``[n, 3]`` given entity, first and last step of the facts of a relation."""
        given = query_columns(side)[0]
        return self.facts[self.facts[:, REL] == rel][:, [given, FIRST, LAST]]

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
