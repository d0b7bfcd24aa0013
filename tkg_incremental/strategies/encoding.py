"""Entities at the steps of a batch, encoded once for all of its terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.shared import Places, SharedTable


class BatchEncoding:
    """All that are known at the steps of a batch's rows, encoded when the first term asks.

    Terms that encode for themselves have gradients of the tables' size each, which have to be added up.

    Args:
        model: The model that learns.
        timeline: Who is known when.
        times: ``[n]`` the steps of the batch's rows.
        occurrences: How many entities the batch is scored with, each as often as it occurs. If these are fewer than
            those who are known, it is better to encode those who occur.
    """

    def __init__(self, model: TKGModel, timeline: Timeline, times: Tensor, occurrences: int) -> None:
        self._model, self._line, self._times, self._occurrences = model, timeline, times, occurrences

    def find(self, places: Sequence[tuple[Tensor, Tensor]]) -> tuple[SharedTable, list[Places]] | None:
        """A table of vectors, and where in it entities stand, given as for :meth:`TKGModel.encode_places`; :obj:`None`
        if the whole is not worth encoding."""
        if self._encoded is None:
            return None
        table, first = self._encoded
        return table, [Places(columns, first.index_select(0, time)) for columns, time in places]

    @cached_property
    def _encoded(self) -> tuple[SharedTable, Tensor] | None:
        """The table, and where in it each step begins, ``[num_steps]``."""
        line, encoder = self._line, self._model.encoder
        steps = torch.unique(self._times)
        at, sizes = torch.stack([steps, line.num_known[steps]]).tolist()
        if sum(sizes) > self._occurrences or not encoder.takes_whole_tables(line.order, sizes):
            return None
        begins = torch.tensor([0, *accumulate(sizes[:-1])], device=line.device)
        first = torch.zeros(line.num_steps, dtype=torch.long, device=line.device).scatter_(0, steps, begins)
        return SharedTable(encoder.known(line.order, at, sizes)), first
