"""A strategy of our own: current facts against the facts they replaced."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot
from tkg_incremental.metrics import Evaluator, hits_at, reciprocal_rank_difference
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import SIDES, TIME
from tkg_incremental.sampling import Pool
from tkg_incremental.sampling.replay import ReplaySampling
from tkg_incremental.strategies.candidates import Negatives, Sample, sampled_logits
from tkg_incremental.strategies.lapse import Lapse, Unreplaced
from tkg_incremental.strategies.step import Step, deleted_answers
from tkg_incremental.strategies.strategy import Strategy
from tkg_incremental.strategies.terms import Drift, Link, Losses, Replay, Term
from tkg_incremental.strategies.views import Added, Current, Reach, Replayed, View


@dataclass(frozen=True)
class Successors(View):
    """Current facts that took the place of others: a query of theirs has deleted answers.

    Args:
        window: How many steps back the replaced facts reach.
        limit: At most so many, drawn anew each step.
    """

    window: int = 10
    limit: int = 10_000

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        current = snapshot.current
        replaced = torch.zeros(len(current), dtype=torch.bool, device=current.device)
        for side in SIDES:
            replaced |= deleted_answers(snapshot, side, self.window).has_answers(current)
        rows = current[replaced]
        return rows[torch.randperm(len(rows), generator=generator, device=rows.device)[: self.limit]]


@dataclass
class Contrast(Term):
    r"""A current fact against facts it replaced, :math:`o'_k`, drawn among the deleted answers of the same query, in
    one softmax:

    .. math::
        L_{contrast} = \log\Big(1 + \sum_k \exp\big(\phi(s, r, o'_k, t) - \phi(s, r, o, t)\big)\Big),

    both sides, mean over the rows.

    Args:
        view: Facts that took the place of others.
        window: How many steps back the replaced facts reach.
        rivals: How many of them are drawn a side; of several, the softmax pushes down what scores highest.
        weight: Weight of the loss.
    """

    view: View | None = field(default_factory=Successors)
    window: int = 10
    rivals: int = 4
    weight: float = 1.0

    def losses(self, step: Step, rows: Tensor) -> Losses:
        logits = sampled_logits(step.model, step, rows, self._draw(step, rows))
        return {"contrast": self.weight * (logits.logsumexp(1) - logits[:, 0]).sum() / len(rows)}

    def _draw(self, step: Step, rows: Tensor) -> Sample:
        columns = rows.new_zeros(2 * len(rows), self.rivals)
        absent = []
        for side, half in zip(SIDES, columns.split(len(rows)), strict=True):
            answers = step.deleted_answers(side, self.window)
            query = answers.lookup(rows)
            start, count = answers.start[query][:, None], answers.counts[query][:, None]
            draws = step.share.by_row(
                len(rows),
                lambda n: torch.rand(n, self.rivals, generator=step.generator, device=rows.device, dtype=torch.double),
            )
            if len(answers.columns):
                # Who has none to draw takes any, which do not count.
                half.copy_(answers.columns[(start + (draws * count).long()).clamp_(max=len(answers.columns) - 1)])
            absent.append(count == 0)
        return Sample(columns, rows[:, TIME].repeat(2), None, torch.cat(absent), Pool(step.timeline))

    def examples(self, step: Step, rows: int) -> int:
        return self.occurrences(rows)

    def occurrences(self, rows: int) -> int:
        return rows * 2 * (1 + self.rivals)


class Supersede(Strategy):
    r"""TIE, with the deleted facts held against what is true.

    :class:`Contrast`, every current fact against the facts it replaced, takes the place of :math:`L_{del}`. What still
    holds is learnt again, beside the replay, so that what is pushed down does not take it along. And the best epoch is
    the one with the highest C@10 + RRD: by C@10 alone it is often the first, before anything is let go of.

    Args:
        negatives: Negatives a side for added facts, or ``"all"``.
        replay: ``"uniform"``, ``"frequency"``, ``"inverse"`` or ``"turns"`` sampling; :obj:`None` switches replay off.
        replay_negatives: Negatives a side for replayed facts, or ``"all"``.
        current_negatives: Negatives a side for all facts of the step, learnt again beside the added ones; 0 leaves them
            out.
        window: How many steps back deleted facts reach, and replayed ones unless ``replay_window`` says otherwise.
        replay_size: How many facts are replayed in a step; 600 for each step of ``window`` by default, fewer than in
            TIE, for what still holds is learnt again beside them.
        replay_window: How many steps back replayed facts reach, or ``"all"``; as ``window`` by default.
        contrast: Weight of the contrast; 0 leaves it out.
        rivals: Replaced facts a side that a fact is contrasted with at a time.
        lapse: Weight of :class:`Lapse`, which lets go of what nothing known took the place of; 0 leaves it out.
        rce: Weight of the replayed cross-entropy.
        rkd: Weight of the distillation.
        drift: Weight of the temporal regularisation.
    """

    watches = "C@10 + RRD"

    def __init__(
        self,
        negatives: Negatives = 500,
        replay: ReplaySampling | None = "uniform",
        replay_negatives: Negatives = 50,
        current_negatives: int = 50,
        window: int = 10,
        replay_size: int | None = None,
        replay_window: Reach | None = None,
        contrast: float = 8.0,
        rivals: int = 4,
        lapse: float = 0.0,
        rce: float = 1.0,
        rkd: float = 1.0,
        drift: float = 1.0,
    ) -> None:
        terms: list[Term] = [Link(Added(), negatives), Drift(drift)]
        if current_negatives:
            terms.append(Link(Current(), current_negatives, name="CE current"))
        if contrast:
            terms.append(Contrast(Successors(window), window, rivals, contrast))
        if lapse:
            terms.append(Lapse(Unreplaced(window), weight=lapse))
        if replay is not None:
            size = 600 * window if replay_size is None else replay_size
            view = Replayed(window if replay_window is None else replay_window, size, replay)
            terms.append(Replay(view, replay_negatives, weight=rce, distill=rkd))
        super().__init__(terms, "Supersede")

    def validate(self, evaluator: Evaluator, model: TKGModel, time: int) -> float:
        ranks = evaluator.rank(model, time, deleted=True)
        if ranks is None:
            return float("nan")
        current = hits_at(ranks.filtered)
        if not len(ranks.deleted):
            return current
        return current + reciprocal_rank_difference(ranks.raw, ranks.deleted, ranks.deleted_row)
