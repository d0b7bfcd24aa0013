"""Supersede: current facts against the facts they replaced."""

from __future__ import annotations

from tkg_incremental.metrics import Evaluator, hits_at, reciprocal_rank_difference
from tkg_incremental.models.base import TKGModel
from tkg_incremental.strategies.contrast import Contrast, UnlikelihoodLoss
from tkg_incremental.strategies.paper import ReplayOptions
from tkg_incremental.strategies.strategy import Strategy
from tkg_incremental.strategies.terms import CrossEntropy, Negatives, Shared, TemporalRegularization, Term
from tkg_incremental.strategies.views import Added, Current, Deleted, Successors


class Supersede(Strategy):
    r"""TIE with :class:`Contrast`, current facts against the facts they replaced, in place of :math:`L_{del}`.

    All facts of the step are learnt beside the added and the replayed ones, so that the contrast does not lower the
    scores of facts that still hold. Early stopping maximizes C@10 + RRD: C@10 alone is often highest in the first
    epoch, before the scores of deleted facts have fallen.

    Args:
        negatives: Negatives per query for added facts, or ``"all"``.
        current_negatives: Negatives per query for the facts of the step, or ``"all"``; 0 leaves them out.
        current_limit: Maximum number of facts of the step, drawn at each step; :obj:`None` for all.
        repeats: Number of times each added fact is visited per epoch.
        replay: Replay of past quads, 600 for each step of the window by default; :obj:`None` switches it off.
        window: Number of steps that deleted facts reach back, and replayed ones by default.
        contrast: Weight of the contrast, or the term; 0 leaves it out.
        unlikelihood: Weight of :class:`UnlikelihoodLoss` for deleted facts without a successor, or the term; 0 leaves
            it out.
        regularization: Weight of the temporal regularization.
        shared: Negatives of one time, or of one ``"batch"``, are shared.
    """

    validation_metric = "C@10 + RRD"

    def __init__(
        self,
        negatives: Negatives = 500,
        current_negatives: Negatives = 50,
        current_limit: int | None = None,
        repeats: int = 1,
        replay: ReplayOptions | None = ReplayOptions(),  # noqa: B008 (frozen)
        window: int = 10,
        contrast: float | Contrast = 8.0,
        unlikelihood: float | UnlikelihoodLoss = 0.0,
        regularization: float = 1.0,
        shared: Shared = False,
    ) -> None:
        terms: list[Term] = [CrossEntropy(Added(repeats), negatives, shared)]
        if regularization:
            terms.append(TemporalRegularization(regularization))
        if current_negatives:
            terms.append(CrossEntropy(Current(current_limit), current_negatives, shared, name="CE current"))
        if isinstance(contrast, Contrast):
            terms.append(contrast)
        elif contrast:
            terms.append(Contrast(Successors(window), window, weight=contrast))
        if isinstance(unlikelihood, UnlikelihoodLoss):
            terms.append(unlikelihood)
        elif unlikelihood:
            terms.append(UnlikelihoodLoss(Deleted(window, unreplaced=True), weight=unlikelihood))
        if replay is not None:
            terms.append(replay.term(window, per_step=600, shared=shared))
        super().__init__(terms, "Supersede")

    def validate(self, evaluator: Evaluator, model: TKGModel, time: int) -> float:
        ranks = evaluator.rank(model, time, deleted=True)
        if ranks is None:
            return float("nan")
        current = hits_at(ranks.filtered)
        if not len(ranks.deleted):
            return current
        return current + reciprocal_rank_difference(ranks.raw, ranks.deleted, ranks.deleted_row)
