"""The terms a loss is made of. Each learns from the rows of one view, or from the parameters alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.strategies.candidates import Negatives, by_time, draw, link_loss, sampled_logits
from tkg_incremental.strategies.step import Step
from tkg_incremental.strategies.views import Added, Deleted, Replayed, View

Losses = dict[str, Tensor]


class Term:
    """One part of a strategy's loss.

    :attr:`view` says which rows it learns from; they are drawn when a step begins and spread over the batches
    of an epoch. A term without a view is added to every batch.
    """

    view: View | None = None
    #: How strongly the term pulls each row back to its value before the step. Optimisers do so themselves, row by row
    #: and in place, which costs a fraction of :meth:`losses` and its gradient.
    pull: float = 0.0

    def losses(self, step: Step, rows: Tensor) -> Losses:
        """Weighted losses of a batch by name; ``rows`` is ``[b, 4]``, and never empty if there is a view."""
        raise NotImplementedError

    def examples(self, step: Step, rows: int) -> int:
        """How many labelled facts ``rows`` rows amount to, negatives included."""
        return rows

    def occurrences(self, rows: int) -> int:
        """How many entities ``rows`` rows are scored with, as often as they occur, but for those that rows share."""
        return 2 * rows


def own_candidates(negatives: Negatives, shared: bool) -> int:
    """How many entities a side of a row is scored with, but for those it shares with other rows."""
    return 1 if negatives == "all" or shared else 1 + negatives


def count_negatives(step: Step, negatives: Negatives) -> int:
    if negatives == "all":
        return int(step.timeline.num_known[step.snapshot.time])
    return negatives


@dataclass
class Link(Term):
    r""":math:`\alpha_1 L_{CE}`: the true entity against negatives, both sides.

    Args:
        view: Rows to learn.
        negatives: Negatives a side, or ``"all"``.
        shared: Rows of one time share their negatives.
        weight: :math:`\alpha_1`.
        name: Name of the loss.
    """

    view: View | None = field(default_factory=Added)
    negatives: Negatives = 500
    shared: bool = False
    weight: float = 1.0
    name: str = "CE"

    def __post_init__(self) -> None:
        if self.negatives != "all" and self.negatives < 1:
            raise ValueError(f"negatives must be 'all' or at least 1 (got {self.negatives})")

    def losses(self, step: Step, rows: Tensor) -> Losses:
        return {self.name: self.weight * link_loss(step, rows, self.negatives, self.shared)}

    def examples(self, step: Step, rows: int) -> int:
        return rows * 2 * count_negatives(step, self.negatives)

    def occurrences(self, rows: int) -> int:
        return rows * 2 * own_candidates(self.negatives, self.shared)


@dataclass
class Forget(Term):
    r""":math:`\alpha_2 L_{del}`: deleted facts get the label 0, :math:`-\log(1 - \sigma(\phi))`, mean over the rows.

    Args:
        view: Facts to let go of.
        weight: :math:`\alpha_2`.
    """

    view: View | None = field(default_factory=Deleted)
    weight: float = 1.0

    def losses(self, step: Step, rows: Tensor) -> Losses:
        return {"del": self.weight * F.softplus(step.scores(rows)).mean()}


@dataclass
class Replay(Term):
    r""":math:`\alpha_3 L_{RCE} + \alpha_4 L_{RKD}`: replayed facts, learnt again and held to what the previous
    model said of them. Both losses share one scoring of the same candidates, unless the first takes ``"all"``.

    Args:
        view: Facts to replay.
        negatives: Negatives a side; with ``"all"``, distillation goes by 50 of them.
        shared: Rows of one time share their negatives.
        weight: :math:`\alpha_3`.
        distill: :math:`\alpha_4`; with 0 the previous model is not asked.
    """

    view: View | None = field(default_factory=Replayed)
    negatives: Negatives = 50
    shared: bool = False
    weight: float = 1.0
    distill: float = 1.0

    def losses(self, step: Step, rows: Tensor) -> Losses:
        rows = by_time(rows)
        losses = {}
        if self.negatives == "all":
            losses["RCE"] = self.weight * link_loss(step, rows, "all")
            if not self.distill:
                return losses
        sample = draw(step, rows, 50 if self.negatives == "all" else self.negatives, self.shared)
        log_q = sampled_logits(step.model, step, rows, sample).log_softmax(1)
        if self.negatives != "all":
            losses["RCE"] = -self.weight * log_q[:, 0].sum() / len(rows)
        if self.distill:
            with torch.no_grad():
                log_p = sampled_logits(step.previous, step, rows, sample).log_softmax(1)
            divergence = F.kl_div(log_q, log_p, log_target=True, reduction="none").nansum()
            losses["RKD"] = self.distill * divergence / len(rows)
        return losses

    def examples(self, step: Step, rows: int) -> int:
        return rows * 2 * count_negatives(step, self.negatives)

    def occurrences(self, rows: int) -> int:
        return rows * 2 * own_candidates(self.negatives, self.shared)


@dataclass
class Drift(Term):
    r""":math:`\alpha_5 L_{TR}`: the change of every row known at the step before.

    The released code takes the sum of squares, which is what gave the published tables and the default here;
    the paper writes the norm of each table's change.

    Args:
        weight: :math:`\alpha_5`.
        reduction: ``"squares"`` or ``"norm"``.
    """

    weight: float = 1.0
    reduction: Literal["squares", "norm"] = "squares"

    def __post_init__(self) -> None:
        if self.reduction not in ("squares", "norm"):
            raise ValueError(f"reduction must be 'squares' or 'norm' (got {self.reduction!r})")
        # The gradient of the square of a change is twice the change; a norm ties all rows together.
        self.pull = 2 * self.weight if self.reduction == "squares" else 0.0

    def losses(self, step: Step, rows: Tensor) -> Losses:
        changes = [step.model.encoder.rows(name, index) - before for name, (index, before) in step.known_before.items()]
        of = (change.square().sum() if self.reduction == "squares" else change.norm() for change in changes)
        total: Tensor = sum(of, start=rows.new_zeros((), dtype=torch.float))
        return {"TR": self.weight * total}
