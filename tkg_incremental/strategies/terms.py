"""The terms of a loss. A term learns from the quads of one view, or from the parameters alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.loader.batch import Candidates
from tkg_incremental.loader.negatives import NegativeSampler
from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.views import Added, Deleted, Replayed, View

Losses = dict[str, Tensor]
#: Number of negatives per query, or all known entities that are no true answer.
Negatives = int | Literal["all"]
#: Whether quads share their negatives: those of one time, or all of a batch.
Shared = bool | Literal["batch"]


class Term:
    """One part of a strategy's loss.

    :attr:`view` selects the quads it learns from when a step begins; the loader distributes them over the batches of an
    epoch and calls :meth:`draw` for the candidates. A term without a view gets every batch.
    """

    view: View | None = None
    #: Names of the losses, unique within a strategy.
    loss_names: tuple[str, ...] = ()
    #: Weight of the squared change of the parameters since the step before. Optimizers add its gradient row by row.
    anchor_weight: float = 0.0

    def draw(self, quads: Tensor, sampler: NegativeSampler, generator: torch.Generator) -> Candidates | None:
        """Candidates of a batch's quads ``[B, 4]``; :obj:`None` if the term needs none."""
        return None

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        """Weighted losses of a batch by name.

        Args:
            encoded: Scores of the term's quads; :obj:`None` for a term without a view.
            context: The model, its former state and the step.
        """
        raise NotImplementedError

    def num_examples(self, quads: int, known: int) -> int:
        """Number of labelled facts, negatives included.

        Args:
            quads: Number of quads.
            known: Number of known entities.
        """
        return quads


def draw_negatives(
    negatives: Negatives, quads: Tensor, sampler: NegativeSampler, generator: torch.Generator, shared: Shared
) -> Candidates | None:
    if negatives == "all":
        return None
    if shared == "batch":
        return sampler.draw_for_batch(quads, negatives, generator)
    return sampler.draw(quads, negatives, generator, shared)


def check_negatives(negatives: Negatives) -> None:
    if negatives != "all" and negatives < 1:
        raise ValueError(f"negatives must be 'all' or at least 1 (got {negatives})")


def check_weight(name: str, weight: float) -> None:
    if not weight >= 0:
        raise ValueError(f"{name} must be at least 0 (got {weight})")


@dataclass
class CrossEntropy(Term):
    r""":math:`\alpha_1 L_{CE}`: softmax cross-entropy of the true entity against negatives, tail query + head query,
    mean over the quads.

    Args:
        view: Quads to learn.
        negatives: Negatives per query, or ``"all"``.
        shared: Quads of one time share their negatives; with ``"batch"``, all quads of a batch do, for models whose
            entities do not depend on time: a matrix product, and an estimate of ``negatives="all"``.
        weight: :math:`\alpha_1`.
        name: Name of the loss.
    """

    view: View | None = field(default_factory=Added)
    negatives: Negatives = 500
    shared: Shared = False
    weight: float = 1.0
    name: str = field(default="CE", kw_only=True)

    def __post_init__(self) -> None:
        check_negatives(self.negatives)
        check_weight("weight", self.weight)
        self.loss_names = (self.name,)

    def draw(self, quads: Tensor, sampler: NegativeSampler, generator: torch.Generator) -> Candidates | None:
        return draw_negatives(self.negatives, quads, sampler, generator, self.shared)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert encoded is not None
        return {self.name: cross_entropy(encoded, self.weight / len(encoded.quads))}

    def num_examples(self, quads: int, known: int) -> int:
        return quads * 2 * (known if self.negatives == "all" else self.negatives)


def cross_entropy(encoded: EncodedTerm, scale: float = 1.0) -> Tensor:
    """``scale`` times the softmax cross-entropy summed over both queries of all quads; against all known entities if
    none were drawn."""
    if encoded.candidates is None:
        return encoded.one_vs_all_loss(scale)
    if encoded.candidates.for_batch:
        return encoded.batch_loss(scale)
    logits = encoded.logits()
    true = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
    return scale * F.cross_entropy(logits, true, reduction="sum")


@dataclass
class DeletedFacts(Term):
    r""":math:`\alpha_2 L_{del}`: deleted facts get the label 0, :math:`-\log(1 - \sigma(\phi))`, mean over the quads.

    Args:
        view: Deleted facts.
        weight: :math:`\alpha_2`.
    """

    view: View | None = field(default_factory=Deleted)
    weight: float = 1.0
    loss_names = ("del",)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert encoded is not None
        return {"del": self.weight * F.softplus(encoded.scores()).mean()}


@dataclass
class Replay(CrossEntropy):
    r""":math:`\alpha_3 L_{RCE} + \alpha_4 L_{RKD}`: cross-entropy of replayed quads, and the divergence from the
    distribution of the previous model over the same candidates.

    Args:
        view: Quads to replay.
        negatives: Negatives per query, or ``"all"``, which needs ``distill=0``.
        shared: As in :class:`CrossEntropy`; ``"batch"`` needs ``distill=0``.
        weight: :math:`\alpha_3`.
        distill: :math:`\alpha_4`; with 0 the previous model is not evaluated.
        name: Name of the cross-entropy.
    """

    view: View | None = field(default_factory=Replayed)
    negatives: Negatives = 50
    distill: float = 1.0
    name: str = field(default="RCE", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weight("distill", self.distill)
        if (self.negatives == "all" or self.shared == "batch") and self.distill:
            raise ValueError(f"distill must be 0 with negatives='all' or shared='batch' (got {self.distill})")
        if self.distill:
            self.loss_names = (self.name, "RKD")

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        if not self.distill:
            return super().losses(encoded, context)
        assert encoded is not None
        log_q = encoded.logits().log_softmax(1)
        log_p = context.previous_logits(encoded).log_softmax(1)
        divergence = F.kl_div(log_q, log_p, log_target=True, reduction="none").nansum()
        count = len(encoded.quads)
        return {self.name: -self.weight * log_q[:, 0].sum() / count, "RKD": self.distill * divergence / count}


@dataclass
class TemporalRegularization(Term):
    r""":math:`\alpha_5 L_{TR}`: the change of every row known at the step before.

    The released code takes the sum of squares, which gave the published tables and is the default; the paper writes the
    norm of each table's change. The gradient of the squares is added by the optimizers
    (:attr:`~tkg_incremental.strategies.Term.anchor_weight`), which costs a fraction of autograd's way; the value is
    logged at the end of each epoch.

    Args:
        weight: :math:`\alpha_5`.
        reduction: ``"squares"`` or ``"norm"``.
    """

    weight: float = 1.0
    reduction: Literal["squares", "norm"] = "squares"
    loss_names = ("TR",)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)
        if self.reduction not in ("squares", "norm"):
            raise ValueError(f"reduction must be 'squares' or 'norm' (got {self.reduction!r})")
        self.anchor_weight = self.weight if self.reduction == "squares" else 0.0

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        total = torch.zeros((), device=context.model.device)
        for change in context.changes():
            total = total + (change.square().sum() if self.reduction == "squares" else change.norm())
        return {"TR": self.weight * total}
