"""Regularization of the vectors of a batch and of the rows of steps, as terms that any strategy can have."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.ops.answers import REL, SIDES, TIME
from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.regularization import nuclear_norm, temporal_smoothness
from tkg_incremental.strategies.terms import Losses, Term, check_weight


@dataclass
class N3(Term):
    r"""The nuclear 3-norm of the vectors of a batch (:func:`~tkg_incremental.strategies.regularization.n3`), both
    directions, mean over the quads of all terms.

    Args:
        weight: Weight of the loss.
    """

    weight: float = 1e-2
    loss_names = ("N3",)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert context.batch is not None
        model, power = context.model, context.model.encoder.penalty_power
        total, count = torch.zeros((), device=model.device), 0
        # If several processes divide a batch, the mean of their losses is the loss of the batch.
        for part in context.batch.terms:
            if part is None:
                continue
            ends = torch.cat(part.ends)
            rel, time = part.quads[:, REL], part.quads[:, TIME]
            share = part.weight * part.total
            for side in SIDES if model.reciprocal else SIDES[:1]:
                relations = model.encoder.relation_factors(model.relation_rows(rel, side), time)
                # The score is a sum of one product per relation factor, and the ends are factors of each.
                directions = 1 if model.reciprocal else 2
                total = total + directions * len(relations) * nuclear_norm([ends], power) * 2 * share
                total = total + directions * nuclear_norm(relations, power) * share
            count += part.total
        return {"N3": self.weight * total / max(1, count)}


@dataclass
class TemporalSmoothness(Term):
    r"""Neighbouring steps have similar rows (:func:`~tkg_incremental.strategies.regularization.temporal_smoothness`),
    summed over the tables with a row per step, up to the current one.

    Args:
        weight: Weight of the loss.
    """

    weight: float = 1e-2
    loss_names = ("smoothness",)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        encoder = context.model.encoder
        steps = torch.arange(context.time + 1, device=context.model.device)
        total = torch.zeros((), device=context.model.device)
        for name, axis in encoder.axes.items():
            if axis == "time":
                total = total + temporal_smoothness(encoder.rows(name, steps), encoder.penalty_power)
        return {"smoothness": self.weight * total}
