"""Facts as intervals: the table that all views of a timeline are cut from."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tkg_incremental.data.intervals import merge_intervals, sort_quads
from tkg_incremental.data.lazy_quads import LazyQuads
from tkg_incremental.ops.answers import FIRST, HEAD, LAST, REL, TAIL, TIME
from tkg_incremental.ops.keys import lexsort, pack

__all__ = ["FactTable", "LazyQuads"]


class FactTable:
    """Facts ``[F, 5]`` (head, rel, tail, first, last), sorted by first, head, rel, tail, last.

    A fact holds at the steps ``first … last``, both included. Memory and time follow the number of facts, not their
    durations. The methods that compare steps (:meth:`added`, :meth:`removed`, :meth:`deleted`,
    :meth:`boundary_facts`) need a :meth:`merged` table.

    Args:
        facts: The facts in any order.
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
    """

    def __init__(self, facts: Tensor, num_entities: int, num_relations: int, num_steps: int) -> None:
        self.num_entities, self.num_relations, self.num_steps = num_entities, num_relations, num_steps
        keys = self._pack(facts)
        # Cached facts are in order already: checking costs much less than sorting.
        if not _is_sorted(facts[:, FIRST], keys, facts[:, LAST]):
            order = lexsort(keys, facts[:, LAST])
            order = order[torch.argsort(facts[order, FIRST], stable=True)]
            facts, keys = facts[order], keys[order]
        #: ``[F, 5]`` head, rel, tail, first, last.
        self.facts = facts
        self._keys = keys
        duration = facts[:, LAST] - facts[:, FIRST] + 1
        #: Number of (fact, step) pairs, repeated ones counted.
        self.num_rows = int(duration.sum())
        #: Number of steps of the longest fact.
        self.max_duration = int(duration.max()) if len(facts) else 0
        self._ptr = _pointers(facts[:, FIRST], num_steps)

    @property
    def device(self) -> torch.device:
        return self.facts.device

    def to(self, device: torch.device | str) -> FactTable:
        """The same table on another device (itself if it is there already)."""
        if torch.device(device) == self.device:
            return self
        return FactTable(self.facts.to(device), *self._sizes)

    @cached_property
    def _merged(self) -> FactTable:
        order = torch.argsort(self._keys, stable=True)  # by key, first
        facts = self.facts[order]
        begins, last = merge_intervals(self._keys[order], facts[:, FIRST], facts[:, LAST])
        if len(last) == len(facts):
            return self
        facts = facts[begins]
        facts[:, LAST] = last
        return FactTable(facts, *self._sizes)

    def merged(self) -> FactTable:
        """The table with overlapping and touching intervals of the same triple merged: each (triple, step) once."""
        return self._merged

    # Rows -------------------------------------------------------------------------------------------------------

    def at(self, step: int) -> Tensor:
        """Quads of one step, sorted by head, rel, tail; an unmerged table keeps repeated ones."""
        quads = self.holding(step)[:, : TIME + 1].contiguous()
        quads[:, TIME] = step
        return quads

    def holding(self, step: int) -> Tensor:
        """Facts ``[n, 5]`` that hold at one step, sorted by head, rel, tail: those of the quads of :meth:`at`."""
        # A fact that holds now began at most the longest duration ago.
        span = self._span(self._ptr, step - self.max_duration + 1, step)
        holds = (self.facts[span, LAST] >= step).nonzero().squeeze(1)
        order = torch.argsort(self._keys[span][holds], stable=True)
        return self.facts[span][holds[order]]

    def num_at(self, step: int) -> int:
        """Number of quads of one step."""
        if not 0 <= step < self.num_steps:
            return 0
        return self._ptr[step + 1] - self._ends[1][step]

    def between(self, first: int, last: int) -> LazyQuads:
        """Quads of the steps ``first … last``, both included; steps outside the table are empty."""
        first, last = max(first, 0), min(last, self.num_steps - 1)
        span = self._span(self._ptr, first - self.max_duration + 1, last if first <= last else -1)
        facts = self.facts[span]
        facts = facts[facts[:, LAST] >= first]
        facts[:, FIRST].clamp_(min=first)
        facts[:, LAST].clamp_(max=last)
        return LazyQuads(facts)

    def quads(self) -> Tensor:
        """All quads ``[num_rows, 4]``, sorted by time, head, rel, tail. Memory follows the durations of the facts."""
        return self.between(0, self.num_steps - 1).quads()

    # Changes, of a merged table ---------------------------------------------------------------------------------

    def added(self, step: int) -> Tensor:
        """Quads of ``step`` whose triple does not hold at the step before."""
        return self.facts[self._span(self._ptr, step, step), : TIME + 1].clone()

    def removed(self, step: int) -> Tensor:
        """Quads of the step before ``step`` whose triple does not hold at ``step``."""
        return _last_quads(self._ended(step - 1, step - 1))

    def deleted(self, step: int, window: int) -> Tensor:
        """Triples that held in the ``window`` steps before ``step`` and do not hold at ``step``, as its quads."""
        order, ptr, next_first = self._ends
        rows = order[self._span(ptr, step - window, step - 1)]
        # Of several intervals of a triple, only the last one before `step` has its next one after `step`.
        rows = rows[next_first[rows] > step]
        quads = self.facts[rows[torch.argsort(self._keys[rows])], : TIME + 1]
        quads[:, TIME] = step
        return quads

    def boundary_facts(self, first: int, last: int) -> Tensor:
        """Quads of the steps ``first … last`` at which a triple begins or ends, and all quads of ``last``; each once.

        They describe when answers changed in few rows.
        """
        begun = self.facts[self._span(self._ptr, first, last - 1), : TIME + 1]
        ended = self._ended(first, last - 1)
        ended = _last_quads(ended[ended[:, FIRST] < ended[:, LAST]])  # a fact of one step has begun in it, too
        return torch.cat([sort_quads(torch.cat([begun, ended])), self.at(last)])

    def _ended(self, first: int, last: int) -> Tensor:
        """Facts ``[n, 5]`` that end at the steps ``first … last``, sorted by last, head, rel, tail."""
        order, ptr, _ = self._ends
        return self.facts[order[self._span(ptr, first, last)]]

    @cached_property
    def _ends(self) -> tuple[Tensor, list[int], Tensor]:
        """Facts sorted by last, head, rel, tail ``[F]``; the number of facts that end before each step; and for each
        fact ``[F]`` the step at which the next interval of its triple begins, or a step after all steps."""
        # Intervals of a triple side by side, by first.
        by_triple = torch.argsort(self._keys, stable=True)
        keys, first = self._keys[by_triple], self.facts[by_triple, FIRST]
        next_first = torch.full_like(keys, self.num_steps + 1)
        next_first[by_triple[:-1]] = torch.where(keys[1:] == keys[:-1], first[1:], self.num_steps + 1)
        order = by_triple[torch.argsort(self.facts[by_triple, LAST], stable=True)]
        return order, _pointers(self.facts[order, LAST], self.num_steps), next_first

    def _pack(self, facts: Tensor) -> Tensor:
        return pack(
            [facts[:, column] for column in (HEAD, REL, TAIL)],
            [self.num_entities, self.num_relations, self.num_entities],
        )

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.num_entities, self.num_relations, self.num_steps

    def _span(self, ptr: list[int], first: int, last: int) -> slice:
        low, high = (min(max(step, 0), self.num_steps) for step in (first, last + 1))
        return slice(ptr[low], ptr[max(low, high)])

    def __len__(self) -> int:
        return len(self.facts)

    def __repr__(self) -> str:
        return f"FactTable({len(self)} facts, {self.num_rows} rows, {self.num_steps} steps)"


def _pointers(steps: Tensor, num_steps: int) -> list[int]:
    """How many of the ascending ``steps`` lie before each of the steps ``0 … num_steps``."""
    return torch.searchsorted(steps.contiguous(), torch.arange(num_steps + 1, device=steps.device)).tolist()


def _last_quads(facts: Tensor) -> Tensor:
    """The last quad of each fact, ``[n, 5] → [n, 4]``."""
    return torch.cat([facts[:, :TIME], facts[:, LAST:]], dim=1)


def _is_sorted(*columns: Tensor) -> bool:
    """Whether rows are in lexicographical order of their columns."""
    ordered = torch.ones_like(columns[0][1:], dtype=torch.bool)
    for column in reversed(columns):
        ordered = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & ordered)
    return bool(ordered.all())
