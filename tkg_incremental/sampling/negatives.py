"""Time-dependent negatives: entities known at the row's step that are no true answer there."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.ops.answers import TIME, Side
from tkg_incremental.ops.keys import segment_arange
from tkg_incremental.sampling.share import WHOLE, Share


class NegativeSampler:
    r"""Draws from :math:`D^-_{s,r,t'} = \{o' \in E^{t'}_{known} : (s, r, o', t') \notin D^{t'}\}`, uniformly and
    with replacement, for each row on its own.

    No draw is ever rejected: with the true answers at the ascending columns :math:`a_0 < a_1 < \dots` of :math:`n`
    known entities, the free columns are numbered, a number :math:`u` is drawn, and the column is :math:`u` plus the
    count of :math:`a_i - i \le u`.

    Args:
        timeline: The graph; its train rows are what is true.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def __call__(
        self,
        rows: Tensor,
        side: Side,
        count: int,
        generator: torch.Generator | None = None,
        share: Share = WHOLE,
    ) -> tuple[Tensor, Tensor]:
        """Draws ``count`` negatives for each row; ``share`` says of which batch the rows are a part.

        Returns:
            Columns ``[B, count]`` of the negatives, and ``[B]`` whether a row has any: where every known
            entity is a true answer there is none, and the row's columns mean nothing.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1 (got {count})")
        answers = self.timeline.answers(side, "train")
        queries, query_of_row = torch.unique(answers.lookup(rows), return_inverse=True)
        owner, columns = answers.expand(queries)
        taken = answers.counts[queries]
        # Rows that share a query share its answers: one sorted list for the distinct queries of the batch.
        stride = self.timeline.num_entities + 1
        shifted = owner * stride + columns - segment_arange(taken)
        first = torch.cumsum(taken, 0) - taken

        free = self.timeline.num_known[rows[:, TIME]] - taken[query_of_row]
        number = share.by_row(
            len(rows),
            lambda n: torch.empty(n, count, dtype=torch.long, device=rows.device).random_(generator=generator),
        )
        number %= free.clamp(min=1)[:, None]
        skipped = torch.searchsorted(shifted, number + query_of_row[:, None] * stride, right=True)
        return number + skipped - first[query_of_row][:, None], free > 0

    def __repr__(self) -> str:
        return f"NegativeSampler({self.timeline!r})"
