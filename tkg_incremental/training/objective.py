"""The losses of a batch; of a batch that several processes share, the losses of this one's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from tkg_incremental.distributed.world import ALONE, World
from tkg_incremental.ops.answers import TIME
from tkg_incremental.sampling.share import Stretch
from tkg_incremental.strategies import Losses, Step, Term
from tkg_incremental.strategies.candidates import by_time


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
        losses: Losses = {}
        for term, rows in zip(self.terms, batch, strict=True):
            if rows is None:
                losses |= term.losses(self.step, torch.empty(0, 4, dtype=torch.long, device=self.step.model.device))
            elif len(rows):
                losses |= self._losses(term, rows)
        return losses

    def _losses(self, term: Term, rows: Tensor) -> Losses:
        rank, size, total = self.world.rank, self.world.size, len(rows)
        # No process may be without rows: all must draw, and take part in what is exchanged. The mean over
        # processes that do the same is what each of them has.
        if size == 1 or total < size:
            return term.losses(self.step, rows)
        rows = by_time(rows)  # the order that terms draw negatives in
        begin, end = total * rank // size, total * (rank + 1) // size
        step = replace(self.step, share=Stretch(rows[:, TIME], begin, end))
        weight = (end - begin) * size / total
        return {name: weight * loss for name, loss in term.losses(step, rows[begin:end]).items()}
