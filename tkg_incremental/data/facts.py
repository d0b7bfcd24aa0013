"""Rows sorted by step: the one tensor every view is cut from."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tkg_incremental.ops.keys import lexsort, pack


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

    # What changed: all three are one comparison with a row's neighbours in time, found once for all rows.
    # They count a triple once a step, so they are asked of a table without repeated rows.

    def added(self, step: int) -> Tensor:
        """Rows of ``step`` whose triple does not hold at the step before."""
        span = self._span(step, step)
        return self.rows[span][self._neighbours[0][span] != step - 1]

    def removed(self, step: int) -> Tensor:
        """Rows of the step before ``step`` whose triple does not hold at ``step``."""
        span = self._span(step - 1, step - 1)
        return self.rows[span][self._neighbours[1][span] != step]

    def lapsed(self, step: int, window: int) -> Tensor:
        """Triples of the ``window`` steps before ``step`` that do not hold at ``step``, as its rows."""
        span = self._span(step - window, step - 1)
        # Of all rows of such a triple, only its last one before `step` has its next one after `step`.
        rows = self.rows[span][self._neighbours[1][span] > step]
        rows[:, 3] = step
        return rows

    @cached_property
    def _neighbours(self) -> tuple[Tensor, Tensor]:
        """``[N]`` each: the steps of the row before and of the row after with the same triple."""
        # Stable: the rows of a triple come to stand side by side and stay ordered by time.
        order = torch.argsort(self.keys, stable=True)
        time = self.rows[:, 3][order].to(torch.int32)  # half the memory, twice the speed of the comparisons
        same = torch.diff(self.keys[order]) == 0
        # Where there is none: steps that no comparison above takes for a real one.
        before, after = torch.full_like(time, -2), torch.full_like(time, self._shape[2])
        before[order[1:]] = torch.where(same, time[:-1], -2)
        after[order[:-1]] = torch.where(same, time[1:], self._shape[2])
        return before, after

    def _span(self, first: int, last: int) -> slice:
        steps = self._shape[2]
        low, high = min(max(first, 0), steps), min(max(last + 1, 0), steps)
        return slice(self.ptr[low], self.ptr[max(low, high)])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FactTable({len(self)} rows, {self._shape[2]} steps)"


def _in_order(time: Tensor, keys: Tensor) -> bool:
    later, same = time[1:] > time[:-1], time[1:] == time[:-1]
    return bool((later | (same & (keys[1:] >= keys[:-1]))).all())
