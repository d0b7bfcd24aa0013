"""Facts as intervals: the table that all views of a timeline are cut from."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.data.growth import Growth
from tkg_incremental.data.intervals import merge_intervals, sort_quads
from tkg_incremental.data.lazy_quads import LazyQuads
from tkg_incremental.ops.answers import FIRST, HEAD, LAST, REL, TAIL, TIME
from tkg_incremental.ops.keys import lexsort, pack

__all__ = ["FactTable", "LazyQuads"]


class _Ends(NamedTuple):
    """Facts sorted by last, head, rel, tail.

    ``ptr[t]`` is the number of facts that end before step ``t``. ``next_first`` is the step at which the next interval
    of the same triple begins, or a step after all steps.
    """

    facts: Tensor
    keys: Tensor
    ptr: list[int]
    next_first: Tensor


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
        self._facts, self._keys = facts, keys
        self._growth: Growth | None = None
        duration = facts[:, LAST] - facts[:, FIRST] + 1
        #: Number of (fact, step) pairs, repeated ones counted.
        self.num_rows = int(duration.sum())
        #: Number of steps of the longest fact.
        self.max_duration = int(duration.max()) if len(facts) else 0
        self._ptr = _pointers(facts[:, FIRST], num_steps)

    @property
    def facts(self) -> Tensor:
        """``[F, 5]`` head, rel, tail, first, last."""
        if self._growth is None:
            return self._facts
        # A copy: facts that hold at the last step of a growing table have no last step yet.
        facts = self._facts.clone()
        facts[:, LAST].clamp_(max=self.num_steps - 1)
        return facts

    @property
    def device(self) -> torch.device:
        return self._facts.device

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
        holds = (self._facts[span, LAST] >= step).nonzero().squeeze(1)
        order = torch.argsort(self._keys[span][holds], stable=True)
        return self._facts[span][holds[order]]

    def num_at(self, step: int) -> int:
        """Number of quads of one step."""
        if not 0 <= step < self.num_steps:
            return 0
        return self._ptr[step + 1] - self._ends.ptr[step]

    def between(self, first: int, last: int) -> LazyQuads:
        """Quads of the steps ``first … last``, both included; steps outside the table are empty."""
        first, last = max(first, 0), min(last, self.num_steps - 1)
        span = self._span(self._ptr, first - self.max_duration + 1, last if first <= last else -1)
        facts = self._facts[span]
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
        return self._facts[self._span(self._ptr, step, step), : TIME + 1].clone()

    def removed(self, step: int) -> Tensor:
        """Quads of the step before ``step`` whose triple does not hold at ``step``."""
        return self._last_rows(self._span(self._ends.ptr, step - 1, step - 1))

    def deleted(self, step: int, window: int) -> Tensor:
        """Triples that held in the ``window`` steps before ``step`` and do not hold at ``step``, as its quads."""
        span = self._span(self._ends.ptr, step - window, step - 1)
        # Of several intervals of a triple, only the last one before `step` has its next one after `step`.
        gone = (self._ends.next_first[span] > step).nonzero().squeeze(1)
        gone = gone[torch.argsort(self._ends.keys[span][gone])]
        quads = self._ends.facts[span, : TIME + 1][gone]
        quads[:, TIME] = step
        return quads

    def boundary_facts(self, first: int, last: int) -> Tensor:
        """Quads of the steps ``first … last`` at which a triple begins or ends, and all quads of ``last``; each once.

        They describe when answers changed in few rows.
        """
        begun = self._facts[self._span(self._ptr, first, last - 1), : TIME + 1]
        span = self._span(self._ends.ptr, first, last - 1)
        ended = self._last_rows(span)
        ended = ended[self._ends.facts[span, FIRST] < ended[:, TIME]]  # a fact of one step has begun in it, too
        return torch.cat([sort_quads(torch.cat([begun, ended])), self.at(last)])

    def _last_rows(self, span: slice) -> Tensor:
        """The last quad of some facts of :attr:`_ends`."""
        quads = self._ends.facts[span, : TIME + 1].clone()
        quads[:, TIME] = self._ends.facts[span, LAST]
        return quads

    @cached_property
    def _ends(self) -> _Ends:
        # Intervals of a triple side by side, by first.
        by_triple = torch.argsort(self._keys, stable=True)
        keys, first = self._keys[by_triple], self._facts[by_triple, FIRST]
        next_first = torch.full_like(keys, self.num_steps + 1)
        next_first[by_triple[:-1]] = torch.where(keys[1:] == keys[:-1], first[1:], self.num_steps + 1)
        order = by_triple[torch.argsort(self._facts[by_triple, LAST], stable=True)]
        facts = self._facts[order]
        return _Ends(facts, self._keys[order], _pointers(facts[:, LAST], self.num_steps), next_first[order])

    # Growth -----------------------------------------------------------------------------------------------------

    def extend(
        self, begin: Tensor, end: Tensor, num_entities: int | None = None, num_relations: int | None = None
    ) -> None:
        """Appends one step in place. Facts that hold at the last step continue, unless they end.

        The cost follows the number of triples that begin or end. The first call of a table prepares it, at a cost that
        follows the number of facts.

        Args:
            begin: ``[n, 3]`` triples that begin at the new step. Those that hold already continue.
            end: ``[m, 3]`` triples that do not hold at the new step any more. Those that do not hold, or that are also
                in ``begin``, are ignored.
            num_entities: Number of entities from now on.
            num_relations: Number of relations from now on.
        """
        merged = self.__dict__.get("_merged")
        if merged is not None and merged is not self:
            merged.extend(begin, end, num_entities, num_relations)
        self._resize(num_entities or self.num_entities, num_relations or self.num_relations)
        growth, step = self._prepare(), self.num_steps
        keys, order = torch.unique(self._pack(begin), return_inverse=True)
        first = torch.empty_like(keys).scatter_(0, order, torch.arange(len(begin), device=begin.device))
        is_new = torch.tensor([key not in growth.open for key in keys.tolist()], dtype=torch.bool, device=keys.device)
        continued = set(keys.tolist())
        growth.end([k for k in self._pack(end).unique().tolist() if k in growth.open and k not in continued], step)
        self.max_duration += growth.num_open > 0
        growth.begin(begin[first[is_new]], keys[is_new], step)
        self.max_duration = max(self.max_duration, int(growth.num_open > 0))
        self.num_rows += growth.num_open
        self.num_steps += 1
        self._ptr.append(len(growth.facts))
        end_ptr = self._ends.ptr
        end_ptr[step] = len(growth.ends)
        end_ptr.append(len(growth.ends))
        self._facts, self._keys = growth.facts.values, growth.keys.values
        self._ends = _Ends(growth.ends.values, growth.end_keys.values, end_ptr, growth.next_first.values)

    def _prepare(self) -> Growth:
        if self._growth is None:
            ends = self._ends
            self._growth = Growth(self._facts, self._keys, ends.facts, ends.keys, ends.next_first, self.num_steps)
            ends.ptr[-1] = len(self._growth.ends)
        return self._growth

    def _resize(self, num_entities: int, num_relations: int) -> None:
        before = self._key_sizes
        self.num_entities, self.num_relations = num_entities, num_relations
        if self._key_sizes != before:  # keys are other numbers now, in the same order
            facts = self.facts
            self._facts, self._keys, self._growth = facts, self._pack(facts), None
            self.__dict__.pop("_ends", None)

    @property
    def _key_sizes(self) -> list[int]:
        # Powers of two, so that keys stay the same while few entities are added; the numbers themselves if it is tight.
        sizes = [self.num_entities, self.num_relations, self.num_entities]
        rounded = [1 << max(size - 1, 0).bit_length() for size in sizes]
        return rounded if math.prod(rounded) < 2**63 else sizes

    def _pack(self, facts: Tensor) -> Tensor:
        return pack([facts[:, column] for column in (HEAD, REL, TAIL)], self._key_sizes)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.num_entities, self.num_relations, self.num_steps

    def _span(self, ptr: list[int], first: int, last: int) -> slice:
        low, high = (min(max(step, 0), self.num_steps) for step in (first, last + 1))
        return slice(ptr[low], ptr[max(low, high)])

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return f"FactTable({len(self)} facts, {self.num_rows} rows, {self.num_steps} steps)"


def _pointers(steps: Tensor, num_steps: int) -> list[int]:
    """How many of the ascending ``steps`` lie before each of the steps ``0 … num_steps``."""
    return torch.searchsorted(steps.contiguous(), torch.arange(num_steps + 1, device=steps.device)).tolist()


def _is_sorted(*columns: Tensor) -> bool:
    """Whether rows are in lexicographical order of their columns."""
    ordered = torch.ones_like(columns[0][1:], dtype=torch.bool)
    for column in reversed(columns):
        ordered = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & ordered)
    return bool(ordered.all())
