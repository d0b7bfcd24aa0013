"""Regularization of the vectors of a batch and of the rows of steps, as terms that any strategy can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.ops.answers import REL, SIDES, TIME
from tkg_incremental.ops.complex_numbers import sum_of_moduli
from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.terms import Losses, Term, check_weight


@dataclass
class N3(Term):
    r"""The nuclear 3-norm of the vectors of a batch (:func:`~tkg_incremental.strategies.regularizers.nuclear_norm`),
    both directions, mean over the quads of all terms.

    Args:
        weight: Weight of the loss.
    """

    weight: float = 1e-2
    loss_names = ("N3",)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        model, power = context.model, context.model.penalty_power
        total, count = torch.zeros((), device=model.device), 0
        # If several processes divide a batch, the mean of their losses is the loss of the batch.
        for part in context.terms:
            if part is None:
                continue
            rel, time = part.quads[:, REL], part.quads[:, TIME]
            share = part.weight * part.total
            ends = nuclear_norm(part.ends, power)
            sides = SIDES if model.reciprocal else SIDES[:1]
            for side in sides:
                relations = model.relation_factors(model.relation_rows(rel, side), time)
                # The score is a sum of one product per relation factor, and the ends are factors of each.
                penalty = len(relations) * ends + nuclear_norm(relations, power)
                total = total + 2 / len(sides) * penalty * share
            count += part.total
        return {"N3": self.weight * total / max(1, count)}


@dataclass
class TemporalSmoothness(Term):
    r"""Neighbouring steps have similar rows (:func:`~tkg_incremental.strategies.regularizers.temporal_smoothness`),
    summed over the tables with a row per step, up to the current one.

    Args:
        weight: Weight of the loss.
    """

    weight: float = 1e-2
    loss_names = ("smoothness",)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        model = context.model
        steps = torch.arange(context.time + 1, device=model.device)
        total = torch.zeros((), device=model.device)
        for name in model.tables("time"):
            total = total + temporal_smoothness(model.rows(name, steps), model.penalty_power)
        return {"smoothness": self.weight * total}


def nuclear_norm(factors: Sequence[Tensor], p: int = 3) -> Tensor:
    r"""The nuclear p-norm penalty of the `"Canonical Tensor Decomposition for Knowledge Base Completion"
    <https://arxiv.org/abs/1806.07297>`_ paper, on the complex factors of a batch of facts.

    .. math::
        \frac{1}{B} \sum_{b=1}^{B} \sum_f \sum_n \lvert f_b[n] \rvert^p, \qquad
        \lvert z \rvert = \sqrt{\mathrm{Re}(z)^2 + \mathrm{Im}(z)^2}

    The factors of TComplEx are the head, the relation at the step, :math:`\mathbf{r} \odot \boldsymbol{\tau}_t`, and
    the tail. Those of TNTComplEx are the head, both parts of the relation, and the tail; as the score is a sum of two
    products, the ends count twice.

    Args:
        factors: Each ``[B, d]``; the first half is the real part, the second half the imaginary part.
        p: The power, at least 2: 3 in the paper (N3); 4 in that of ChronoR.

    Returns:
        A scalar, to be multiplied by the strength of the penalty.
    """
    if not factors:
        raise ValueError("factors must not be empty")
    return torch.stack([sum_of_moduli(factor, p) / len(factor) for factor in factors]).sum()


def temporal_smoothness(table: Tensor, p: int = 3) -> Tensor:
    r"""The smoothness of a time table from the `"Tensor Decompositions for Temporal Knowledge Base Completion"
    <https://arxiv.org/abs/2004.04926>`_ paper: neighbouring steps should have similar vectors.

    .. math::
        \frac{1}{T - 1} \sum_{i=1}^{T-1} \lVert \boldsymbol{\tau}_{i+1} - \boldsymbol{\tau}_i \rVert_p^p, \qquad
        \lVert \mathbf{z} \rVert_p^p = \sum_n \lvert \mathbf{z}[n] \rvert^p

    Args:
        table: ``[T, d]``, complex rows; the first half is the real part, the second half the imaginary part.
        p: The power: 3 in the paper; 4 in that of ChronoR.

    Returns:
        A scalar; zero for a table of one step.
    """
    if len(table) < 2:
        return table.new_zeros(())
    return sum_of_moduli(table[1:] - table[:-1], p) / (len(table) - 1)
