"""Rows sorted by step: the one tensor every view is cut from."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.ops.keys import contains, lexsort, pack


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
        keys = self._pack(rows)
        order = lexsort(rows[:, 3], keys)
        self.rows = rows[order]
        self.keys = keys[order]
        steps = torch.arange(num_steps + 1, device=rows.device)
        self.ptr: list[int] = torch.searchsorted(self.rows[:, 3].contiguous(), steps).tolist()

    def _pack(self, rows: Tensor) -> Tensor:
        entities, relations, _ = self._shape
        return pack([rows[:, 0], rows[:, 1], rows[:, 2]], [entities, relations, entities])

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

    def not_in(self, step: int, other: int) -> Tensor:
        """Rows of ``step`` whose triple does not hold at ``other``."""
        return self.at(step)[~contains(self.keys[self._span(other, other)], self.keys[self._span(step, step)])]

    def lapsed(self, step: int, window: int) -> Tensor:
        """Triples of the ``window`` steps before ``step`` that do not hold at ``step``; their time is ``step``."""
        span = self._span(step - window, step - 1)
        keys, inverse = torch.unique(self.keys[span], return_inverse=True)
        # Any of the rows behind a key will do: they differ in time alone, which is replaced.
        source = torch.empty_like(keys).scatter_(0, inverse, torch.arange(len(inverse), device=keys.device))
        rows = self.rows[span][source[~contains(self.keys[self._span(step, step)], keys)]]
        rows[:, 3] = step
        return rows

    def _span(self, first: int, last: int) -> slice:
        steps = self._shape[2]
        low, high = min(max(first, 0), steps), min(max(last + 1, 0), steps)
        return slice(self.ptr[low], self.ptr[max(low, high)])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FactTable({len(self)} rows, {self._shape[2]} steps)"
