"""What a term of the loss may use besides the scores of its quads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.loader.batch import TermBatch, TKGBatch
from tkg_incremental.metrics.evaluator import eval_mode
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Axis
from tkg_incremental.models.encoding import EncodedTerm


@dataclass
class TrainingContext:
    """One step of training.

    Args:
        timeline: The graph.
        time: The step.
        model: The model that learns.
        previous: The model before the step, frozen.
        terms: What the terms of the present batch learn from, for terms without a view.
    """

    timeline: Timeline
    time: int
    model: TKGModel
    previous: TKGModel
    terms: Sequence[EncodedTerm | None] = ()

    @torch.no_grad()
    def previous_logits(self, encoded: EncodedTerm) -> Tensor:
        """The previous model's scores for the same quads and candidates, ``[2B, 1 + K]``."""
        batch = TKGBatch([TermBatch(encoded.quads, encoded.candidates)], encoded.sampler)
        # The previous model may share modules with the model that learns, e.g. dropout, which must be inactive here.
        with eval_mode(self.previous):
            (term,) = self.previous.encode(batch, self.timeline)
            assert term is not None
            return term.logits()

    def changes(self) -> Iterator[Tensor]:
        """For each table, the change of the rows known at the step before, ``[n, width]``."""
        model = self.model
        for name, axis in model.axes.items():
            index = torch.arange(model.sizes[axis], device=model.device)
            index = index[is_known_before(self.timeline, self.time, axis, index)]
            with torch.no_grad():
                before = self.previous.rows(name, index)
            yield model.rows(name, index) - before


def is_known_before(timeline: Timeline, time: int, axis: Axis, index: Tensor) -> Tensor:
    """Whether rows of tables of an axis were known at the step before, ``[n] → [n]``."""
    if axis == "entity":
        return timeline.column_of[index] < timeline.num_known[max(time - 1, 0)]
    return index < time if axis == "time" else torch.ones_like(index, dtype=torch.bool)
