"""Rows sorted by step: the one tensor every view is cut from."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.ops.keys import lexsort, pack


class _Runs(NamedTuple):
    """First and last rows of all runs of steps over which a triple holds, both sorted by step.

    ``following`` is the step at which the next run of the triple begins, beyond all steps if there is none.
    """

    first: Tensor
    first_ptr: list[int]
    last: Tensor
    last_ptr: list[int]
    following: Tensor


class FactTable:
    """Rows ``[N, 4]`` (head, rel, tail, time) sorted by time, then head, rel, tail.

    Args:
        rows: The rows in any order.
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
    """

    def __init__(self, rows: Tensor, num_entities: int, num_relations: int, num_steps: int) -> None:
        self._shape = (num_entities, num_relations, num_steps)
        head, rel, tail, time = rows.unbind(1)
        keys, time = pack([head, rel, tail], [num_entities, num_relations, num_entities]), time.contiguous()
        # Rows from the cache come in order: looking is much cheaper than sorting.
        if not _in_order(time, keys):
            order = lexsort(time, keys)
            rows, keys, time = rows[order], keys[order], time[order]
        self.rows, self.keys = rows, keys
        steps = torch.arange(num_steps + 1, device=rows.device)
        self.ptr: list[int] = torch.searchsorted(time, steps).tolist()

    def unique(self) -> FactTable:
        """The same table without repeated rows (itself if there are none)."""
        repeated = (self.keys[1:] == self.keys[:-1]) & (self.rows[1:, 3] == self.rows[:-1, 3])
        if not bool(repeated.any()):
            return self
        keep = torch.cat([torch.ones_like(repeated[:1]), ~repeated])
        return FactTable(self.rows[keep], *self._shape)

    def between(self, first: int, last: int) -> Tensor:
        """Rows of the steps ``first … last``, both included; steps outside the table are empty."""
        return self.rows[self._span(first, last)]

    def at(self, step: int) -> Tensor:
        """Rows of one step."""
        return self.between(step, step)

    # What changed. A triple holds over runs of steps, whose first and last rows are found once for all steps:
    # so a view costs what changed, not what holds (but for `turns`, which takes all rows of a step). These are asked
    # of a table without repeated rows.

    def added(self, step: int) -> Tensor:
        """Rows of ``step`` whose triple does not hold at the step before."""
        return self._runs.first[self._span(step, step, self._runs.first_ptr)]

    def removed(self, step: int) -> Tensor:
        """Rows of the step before ``step`` whose triple does not hold at ``step``."""
        return self._runs.last[self._span(step - 1, step - 1, self._runs.last_ptr)]

    def lapsed(self, step: int, window: int) -> Tensor:
        """Triples of the ``window`` steps before ``step`` that do not hold at ``step``, as its rows."""
        span = self._span(step - window, step - 1, self._runs.last_ptr)
        # Of the runs of such a triple, only the last one before `step` has its next one after `step`.
        rows = self._runs.last[span][self._runs.following[span] > step]
        rows[:, 3] = step
        return rows

    def turns(self, first: int, last: int) -> Tensor:
        """Rows of the steps ``first … last`` at which a triple begins or ends, and all rows of ``last``, where those
        that hold on were last seen; each once."""
        begun = self._runs.first[self._span(first, last - 1, self._runs.first_ptr)]
        over = self._runs.last[self._span(first, last - 1, self._runs.last_ptr)]
        return FactTable(torch.cat([begun, over, self.at(last)]), *self._shape).unique().rows

    @cached_property
    def _runs(self) -> _Runs:
        # Stable: the rows of a triple come to stand side by side and stay ordered by time.
        order = torch.argsort(self.keys, stable=True)
        keys, time = self.keys[order], self.rows[:, 3][order]
        same = torch.diff(keys) == 0
        breaks = ~(same & (torch.diff(time) == 1))
        outermost = breaks.new_ones(min(1, len(keys)))
        first = order[torch.cat([outermost, breaks])].sort().values
        ends = torch.cat([breaks, outermost])
        last, by_time = order[ends].sort()
        never = time.new_full((len(outermost),), self._shape[2] + 1)
        following = torch.cat([torch.where(same, time[1:], self._shape[2] + 1), never])[ends][by_time]
        ptr = torch.tensor(self.ptr, device=order.device)
        first_ptr, last_ptr = (torch.searchsorted(rows, ptr).tolist() for rows in (first, last))
        return _Runs(self.rows[first], first_ptr, self.rows[last], last_ptr, following)

    def _span(self, first: int, last: int, ptr: list[int] | None = None) -> slice:
        ptr = self.ptr if ptr is None else ptr
        steps = self._shape[2]
        low, high = min(max(first, 0), steps), min(max(last + 1, 0), steps)
        return slice(ptr[low], ptr[max(low, high)])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FactTable({len(self)} rows, {self._shape[2]} steps)"


def _in_order(time: Tensor, keys: Tensor) -> bool:
    later, same = time[1:] > time[:-1], time[1:] == time[:-1]
    return bool((later | (same & (keys[1:] >= keys[:-1]))).all())
