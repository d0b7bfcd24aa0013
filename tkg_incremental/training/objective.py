"""The losses of a batch; of a batch that several processes share, the losses of this one's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tkg_incremental.distributed.world import ALONE, World
from tkg_incremental.ops.answers import TIME
from tkg_incremental.sampling.share import Share, Stretch
from tkg_incremental.strategies import Losses, Step, Term
from tkg_incremental.strategies.candidates import by_time
from tkg_incremental.strategies.encoding import BatchEncoding


class Objective(nn.Module):
    r"""The terms of a strategy as one module, which is what :class:`torch.nn.parallel.DistributedDataParallel` takes.

    Several processes are given the same batch, and each learns a stretch of each term's rows. A loss is the mean over
    the rows of a stretch; it is weighted by how large the stretch is, so that the mean over the processes is the mean
    over the batch, for any number of processes.

    Args:
        step: The step of learning.
        terms: The terms of the loss.
        world: The processes that share the batches.
    """

    def __init__(self, step: Step, terms: Sequence[Term], world: World = ALONE) -> None:
        super().__init__()
        self.model = step.model  # for whoever asks for parameters
        self.step, self.terms, self.world = step, terms, world

    @property
    def is_ours(self) -> bool:
        """Whether the model and all terms are of this package."""
        parts = [self.model.encoder, self.model.decoder, *self.terms]
        return all(type(part).__module__.startswith("tkg_incremental.") for part in parts)

    def forward(self, batch: Sequence[Tensor | None]) -> Losses:
        """Losses by name; ``batch`` has the rows ``[b, 4]`` of each term, or :obj:`None` for a term without a view."""
        shares = [None if rows is None or not len(rows) else self._share(rows) for rows in batch]
        encoding = self._encoding(shares)
        losses: Losses = {}
        for term, rows, share in zip(self.terms, batch, shares, strict=True):
            if rows is None:
                losses |= term.losses(self.step, torch.empty(0, 4, dtype=torch.long, device=self.step.model.device))
            elif share is not None:
                step = replace(self.step, share=share.of, encoding=encoding)
                found = term.losses(step, share.rows)
                losses |= found if share.weight == 1 else {name: share.weight * loss for name, loss in found.items()}
        return losses

    def _share(self, rows: Tensor) -> _Shared:
        rank, size, total = self.world.rank, self.world.size, len(rows)
        # No process may be without rows: all must draw, and take part in what is exchanged. The mean over
        # processes that do the same is what each of them has.
        if size == 1 or total < size:
            return _Shared(rows, self.step.share, 1.0)
        rows = by_time(rows)  # the order that terms draw negatives in
        begin, end = total * rank // size, total * (rank + 1) // size
        return _Shared(rows[begin:end], Stretch(rows[:, TIME], begin, end), (end - begin) * size / total)

    def _encoding(self, shares: Sequence[_Shared | None]) -> BatchEncoding | None:
        learnt = [(term, share.rows) for term, share in zip(self.terms, shares, strict=True) if share is not None]
        if not learnt:
            return None
        all_rows = torch.cat([rows for _, rows in learnt])
        occurrences = sum(term.occurrences(len(rows)) for term, rows in learnt)
        step = self.step
        return BatchEncoding(step.model, step.timeline, step.negatives.pool, all_rows, occurrences)


class _Shared(NamedTuple):
    """This process' rows of a term: which part of all they are, and what their loss weighs."""

    rows: Tensor
    of: Share
    weight: float
