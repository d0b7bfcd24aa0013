"""Terms for facts that are over: against the facts that replaced them, or against negatives."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.loader.batch import Candidates
from tkg_incremental.loader.negatives import NegativeSampler
from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.ops.answers import SIDES, TIME, AnswerIndex, Side
from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.terms import Losses, Negatives, Term, check_negatives, check_weight, draw_negatives
from tkg_incremental.strategies.views import Deleted, Successors, View, deleted_answers, has_no_answer


@dataclass
class Contrast(Term):
    r"""A current fact against facts it replaced, :math:`o'_k`, drawn from the deleted answers of the same query:

    .. math::
        L_{contrast} = \log\Big(1 + \sum_k \exp\big(\phi(s, r, o'_k, t) - \phi(s, r, o, t)\big)\Big),

    both queries, mean over the quads.

    Args:
        view: Facts that replaced others.
        window: Number of steps back that replaced facts reach.
        rivals: Number of replaced facts drawn per query.
        weight: Weight of the loss.
    """

    view: View | None = field(default_factory=Successors)
    window: int = 10
    rivals: int = 4
    weight: float = 1.0
    loss_names = ("contrast",)
    _answers: tuple[Timeline, int, dict[Side, AnswerIndex]] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)
        if self.rivals < 1:
            raise ValueError(f"rivals must be at least 1 (got {self.rivals})")

    def draw(self, quads: Tensor, sampler: NegativeSampler, generator: torch.Generator) -> Candidates:
        entities = quads.new_zeros(2 * len(quads), self.rivals)
        draws = torch.rand(entities.shape, generator=generator, device=quads.device, dtype=torch.double)
        counts = []
        for i, side in enumerate(SIDES):
            half = slice(i * len(quads), (i + 1) * len(quads))
            row, entity = self._deleted(sampler.timeline, quads, side).expand(quads)
            count = torch.bincount(row, minlength=len(quads))
            start = count.cumsum(0) - count
            if len(entity):
                # A query without deleted answers takes any entity, which is masked.
                place = start[:, None] + (draws[half] * count[:, None]).long()
                entities[half] = entity[place.clamp_(max=len(entity) - 1)]
            counts.append(count)
        mask = (torch.cat(counts) == 0)[:, None]
        return Candidates(entities, quads[:, TIME].repeat(2), None, mask, from_pool=False)

    def _deleted(self, timeline: Timeline, quads: Tensor, side: Side) -> AnswerIndex:
        """Deleted answers of the quads' step: all quads of the view have the same time."""
        time = int(quads[0, TIME])
        if self._answers is None or self._answers[0] is not timeline or self._answers[1] != time:
            self._answers = timeline, time, {s: deleted_answers(timeline, time, s, self.window) for s in SIDES}
        return self._answers[2][side]

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert encoded is not None
        logits = encoded.logits()
        return {"contrast": self.weight * (logits.logsumexp(1) - logits[:, 0]).sum() / len(encoded.quads)}

    def num_examples(self, quads: int, known: int) -> int:
        return quads * 2 * (1 + self.rivals)


@dataclass
class UnlikelihoodLoss(Term):
    r"""The `unlikelihood <https://arxiv.org/abs/1908.04319>`_ of deleted answers :math:`o'` among negatives :math:`N`:

    .. math::
        L_{unlikelihood} = -\log\Big(1 - \frac{\exp \phi(s, r, o', t)}{\exp \phi(s, r, o', t) + \sum_{o'' \in N}
        \exp \phi(s, r, o'', t)}\Big),

    mean over the quads. Unlike :class:`DeletedFacts`, which lowers the score below zero whatever the scores of other
    entities, its gradient vanishes once the deleted answer no longer stands out.

    Args:
        view: Deleted facts.
        negatives: Negatives per query.
        weight: Weight of the loss.
        open_only: Only queries without an answer at the step; the others have a successor that :class:`Contrast` uses.
    """

    view: View | None = field(default_factory=lambda: Deleted(unreplaced=True))
    negatives: Negatives = 50
    weight: float = 1.0
    open_only: bool = True
    loss_names = ("unlikelihood",)

    def __post_init__(self) -> None:
        check_negatives(self.negatives)
        if self.negatives == "all":
            raise ValueError("negatives must be a number (got 'all')")
        check_weight("weight", self.weight)

    def draw(self, quads: Tensor, sampler: NegativeSampler, generator: torch.Generator) -> Candidates | None:
        return draw_negatives(self.negatives, quads, sampler, generator, shared=False)

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert encoded is not None
        logits = encoded.logits()
        # Without negatives, the loss of a query would be infinite.
        counts = (logits[:, 1:] > -torch.inf).any(1)
        if self.open_only:
            counts &= has_no_answer(context.timeline, encoded.quads).flatten()
        logits = logits[counts]
        margin = logits[:, 0] - logits[:, 1:].logsumexp(1)
        return {"unlikelihood": self.weight * F.softplus(margin).sum() / len(encoded.quads)}

    def num_examples(self, quads: int, known: int) -> int:
        assert self.negatives != "all"
        return quads * 2 * self.negatives
