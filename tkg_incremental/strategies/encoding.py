"""Entities at the steps of a batch, encoded once for all of its terms."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import HEAD, TAIL, TIME
from tkg_incremental.ops.shared import Places, SharedTable
from tkg_incremental.sampling import Pool


class BatchEncoding:
    """The heads and tails of a batch's rows, and those they are held against, encoded when the first term asks.

    Terms that encode for themselves have a gradient each, of the tables' size or of the rows they looked up, and these
    have to be added up. Where negatives are drawn from everybody, whoever is known at the steps of the batch is
    encoded; otherwise it is the pool, and beside it the heads and tails, few of which are in it.

    Args:
        model: The model that learns.
        timeline: Who is known when.
        pool: Whom negatives are drawn from.
        rows: ``[n, 4]`` the rows of all terms.
        occurrences: How many entities the batch is scored with, each as often as it occurs. If these are fewer than
            those who would be encoded, it is better that terms encode who occurs.
    """

    def __init__(self, model: TKGModel, timeline: Timeline, pool: Pool, rows: Tensor, occurrences: int) -> None:
        self._model, self._line, self._pool = model, timeline, pool
        self._rows, self._occurrences = rows, occurrences

    @property
    def is_worth_it(self) -> bool:
        """Whether there is anything to be had here."""
        return self._encoded is not None

    def has(self, rows: Tensor) -> bool:
        """Whether there are the heads and tails of these rows. A device has to be waited for."""
        return self.is_worth_it and bool(self._find(rows)[1].all())

    def ends(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of the heads and tails of some of the batch's rows, ``2 × [B, d]``."""
        assert self._encoded is not None
        index, are_there = self._find(rows)
        torch._assert_async(are_there.all(), "these rows are not of the batch: give the term a step without encoding")
        head, tail = self._encoded.ends.rows(index).unbind(1)
        return head, tail

    def _find(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Where heads and tails stand in their table, and whether they do, both ``[B, 2]``."""
        assert self._encoded is not None
        columns, time = ends_of(self._line, rows), rows[:, TIME, None]
        if self._pool.is_everybody:
            first = self._encoded.first[time]
            return columns + first, (first >= 0) & (columns < self._pool.num_known[time])
        pairs = columns * self._line.num_steps + time
        index = torch.searchsorted(self._pairs, pairs).clamp_(max=len(self._pairs) - 1)
        return index, self._pairs[index] == pairs

    def drawn(self, columns: Tensor, time: Tensor, pool: Pool) -> tuple[SharedTable, Places]:
        """A table of vectors, and where in it entities stand.

        Args:
            columns: ``[R, K]`` places in the order of a pool.
            time: ``[R]`` the step of each list.
            pool: That pool.
        """
        assert self._encoded is not None
        if pool is self._pool or (pool.is_everybody and self._pool.is_everybody):
            return self._encoded.pool, Places(columns, self._encoded.first.index_select(0, time))
        table, (places,) = self._model.encode_places([(columns, time)], pool.order, pool.num_encoded)
        return table, places

    @cached_property
    def _encoded(self) -> _Encoded | None:
        line, pool, encoder = self._line, self._pool, self._model.encoder
        steps = torch.unique(self._rows[:, TIME])
        at, sizes = torch.stack([steps, pool.num_encoded[steps]]).tolist()
        if not encoder.encodes_together or sum(sizes) > self._occurrences:
            return None
        begins = torch.tensor([0, *accumulate(sizes[:-1])], device=line.device)
        first = torch.full((line.num_steps,), -1, device=line.device).scatter_(0, steps, begins)
        if pool.is_everybody:
            if not encoder.takes_whole_tables(line.order, sizes):
                return None
            table = SharedTable(encoder.known(line.order, at, sizes))
            return _Encoded(table, first, table)
        # One look-up for the pool and for heads and tails, so that tables have one gradient.
        members = pool.order[: max(sizes)]
        both = torch.cat([members, line.order[self._pairs // line.num_steps]])
        entities, place = torch.unique(both, return_inverse=True)
        member, end = place.split([len(members), len(self._pairs)])
        others = torch.ones_like(entities, dtype=torch.bool).index_fill_(0, member, False).nonzero().squeeze(1)
        some = encoder.among(entities)
        ends = SharedTable(some.entity(end, self._pairs % line.num_steps))
        return _Encoded(SharedTable(some.known(torch.cat([member, others]), at, sizes)), first, ends)

    @cached_property
    def _pairs(self) -> Tensor:
        """Who is a head or a tail of the rows at which step, each once, in ascending order."""
        return torch.unique(ends_of(self._line, self._rows) * self._line.num_steps + self._rows[:, TIME, None])


class _Encoded(NamedTuple):
    """The pool at the steps of the batch; where each step begins, ``[num_steps]``, -1 for others; heads and tails."""

    pool: SharedTable
    first: Tensor
    ends: SharedTable


def ends_of(line: Timeline, rows: Tensor) -> Tensor:
    """Heads and tails as places in the order of first appearance, ``[B, 4] → [B, 2]``."""
    # By a stride, as a list of columns would travel to the device with every batch.
    return line.column_of[rows[:, HEAD : TAIL + 1 : TAIL - HEAD]]
