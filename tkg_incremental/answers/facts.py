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


class KnownFacts(Protocol):
    """Where answers are looked up."""

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        """All intervals of a triple."""

    def known_answers(self, given: int, rel: int, side: Side, step: int) -> dict[int, Interval]:
        """Entities on ``side`` of facts that hold at a step, with their intervals."""

    def answers_ever(self, given: int, rel: int, side: Side) -> Tensor:
        """``[n]`` entities on ``side`` of facts that hold at any step."""

    def type_members(self, rel: int, side: Side) -> Tensor:
        """``[n]`` entities that ever were on ``side`` of a relation, ascending."""

    def answers_per_query(self, rel: int, side: Side) -> float:
        """Mean number of simultaneous answers of the queries of a relation that have one: 1 for an office."""

    def relations_of_type(self, head: int, tail: int) -> list[int]:
        """Relations with ``head`` among their heads and ``tail`` among their tails."""


class TensorFacts:
    """Known facts in memory.

    Args:
        facts: ``[F, 5]`` merged intervals: head, rel, tail, first, last.
        num_steps: Number of steps; a fact that holds at the last one has no end yet.
    """

    def __init__(self, facts: Tensor, num_steps: int) -> None:
        self.facts, self.num_steps = facts.long(), num_steps
        self._members: dict[tuple[int, Side], Tensor] = {}
        self._per_query: dict[tuple[int, Side], float] = {}

    def _interval(self, row: Tensor) -> Interval:
        first, last = int(row[FIRST]), int(row[LAST])
        return Interval(first, None if last >= self.num_steps - 1 else last)

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        wanted = torch.tensor([head, rel, tail])
        return [self._interval(row) for row in self.facts[(self.facts[:, :3] == wanted).all(1)]]

    def known_answers(self, given: int, rel: int, side: Side, step: int) -> dict[int, Interval]:
        f = self.facts
        holds = (f[:, REL] == rel) & (f[:, FIRST] <= step) & (step <= f[:, LAST])
        rows = f[holds & (f[:, TAIL if side == "head" else HEAD] == given)]
        return {int(row[HEAD if side == "head" else TAIL]): self._interval(row) for row in rows}

    def answers_ever(self, given: int, rel: int, side: Side) -> Tensor:
        f = self.facts
        rows = f[(f[:, REL] == rel) & (f[:, TAIL if side == "head" else HEAD] == given)]
        return torch.unique(rows[:, HEAD if side == "head" else TAIL])

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
