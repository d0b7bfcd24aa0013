"""Facts that are over and that nothing took the place of."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies.candidates import by_time, draw, sampled_logits
from tkg_incremental.strategies.step import Step
from tkg_incremental.strategies.terms import Losses, Term
from tkg_incremental.strategies.views import Deleted, View


class Unreplaced(Deleted):
    """Those of the deleted facts that have a query without an answer now."""

    def all(self, snapshot: Snapshot) -> Tensor:
        over = super().all(snapshot)
        return over[_is_open(snapshot.timeline, over).any(0)]


@dataclass
class Lapse(Term):
    r"""A fact that is over should no longer be the answer, even where no known fact is the answer now:

    .. math::
        L_{lapse} = -\log\Big(1 - \frac{\exp \phi(s, r, o', t)}{\exp \phi(s, r, o', t) + \sum_{o'' \in N}
        \exp \phi(s, r, o'', t)}\Big)

    for each side whose query has no answer now, mean over the rows: the `unlikelihood
    <https://arxiv.org/abs/1908.04319>`_ of the old answer :math:`o'` among negatives :math:`N`. Unlike
    :class:`Forget`, which takes its score below zero whatever others have, it lets go of it once it stands out no more.

    Args:
        view: Facts to let go of.
        negatives: Negatives a side.
        weight: Weight of the loss.
    """

    view: View | None = field(default_factory=Unreplaced)
    negatives: int = 50
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.negatives < 1:
            raise ValueError(f"negatives must be at least 1 (got {self.negatives})")

    def losses(self, step: Step, rows: Tensor) -> Losses:
        rows = by_time(rows)
        logits = sampled_logits(step.model, step, rows, draw(step, rows, self.negatives))
        old, others = logits[:, 0], logits[:, 1:].logsumexp(1)
        is_open = _is_open(step.timeline, rows).flatten()
        return {"lapse": self.weight * F.softplus((old - others)[is_open]).sum() / len(rows)}

    def examples(self, step: Step, rows: int) -> int:
        return rows * 2 * self.negatives

    def occurrences(self, rows: int) -> int:
        return rows * 2 * (1 + self.negatives)


def _is_open(timeline: Timeline, rows: Tensor) -> Tensor:
    """Whether the queries of rows have no answer in the train facts of their step, ``[B, 4] → [2, B]``, tails first."""
    return torch.stack([~timeline.answers(side, "train").has_answers(rows) for side in SIDES])
