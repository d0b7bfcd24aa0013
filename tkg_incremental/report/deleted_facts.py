"""Deleted facts that a model still ranks among the first ten answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import HEAD, LAST, REL, SIDES, TAIL, Side
from tkg_incremental.report.changes import DeletedRecord, RankedDeletedFact
from tkg_incremental.report.watch import raw_ranks

TOP = 10


class DeletedFactRanks:
    """Ranks both sides of deleted facts and names those among the first ten answers.

    Args:
        timeline: The graph.
        window: Number of steps that deleted facts reach back.
        entities: Names of the entities.
        relations: Names of the relations.
        max_scores: Maximum number of scores per step; more deleted facts are sampled.
        count: Maximum number of named facts per step.
    """

    def __init__(
        self,
        timeline: Timeline,
        window: int,
        entities: Sequence[str],
        relations: Sequence[str],
        max_scores: int,
        count: int,
    ) -> None:
        self.timeline, self.window = timeline, window
        self.entities, self.relations = entities, relations
        self.max_scores, self.count = max_scores, count

    def record(self, model: TKGModel, time: int, candidates: Tensor) -> DeletedRecord:
        """The ranks of the deleted facts of a step by the model after it.

        Args:
            model: The model.
            time: The step.
            candidates: ``[m, d]`` vectors of the entities known at it.
        """
        deleted = self._sample(self.timeline.truth.deleted(time, self.window), len(candidates), time)
        if len(deleted) == 0:
            return DeletedRecord(time, 0, 0, [])
        found = 0
        named: list[RankedDeletedFact] = []
        for side in SIDES:
            ranks = raw_ranks(model, self.timeline, deleted, side, candidates)
            top = ranks <= TOP
            found += int(top.sum())
            named += self._name(model, deleted[top], ranks[top], side, candidates)
        named.sort(key=_order)
        return DeletedRecord(time, len(SIDES) * len(deleted), found, named[: self.count])

    def _sample(self, quads: Tensor, candidates: int, time: int) -> Tensor:
        """As many quads as may be scored. The run's own generator is not used: recording must not change the run."""
        room = max(1, self.max_scores // (len(SIDES) * candidates))
        if len(quads) <= room:
            return quads
        order = torch.randperm(len(quads), generator=torch.Generator().manual_seed(time))
        return quads[order[:room].to(quads.device)]

    def _name(
        self, model: TKGModel, quads: Tensor, ranks: Tensor, side: Side, candidates: Tensor
    ) -> list[RankedDeletedFact]:
        index = self.timeline.answers(side, "all")
        # Facts with another answer now, then by rank: close to `_order`, which needs the ranks of the answers.
        best = torch.argsort(ranks + ~index.has_answers(quads) * TOP, stable=True)[: self.count]
        quads = quads[best]
        scores = model.score_all(quads, side, candidates)
        owner, answers = index.expand(quads)
        facts = []
        for i, rank in enumerate(ranks[best].tolist()):
            head, rel, tail = quads[i, [HEAD, REL, TAIL]].tolist()
            names = self.entities[head], self.relations[rel], self.entities[tail]
            fact = RankedDeletedFact(*names, side, rank, self._last_true(quads[i]))
            current = answers[owner == i]
            if len(current):
                columns = self.timeline.column_of[current]
                best_answer = int(scores[i, columns].argmax())
                own = scores[i, columns[best_answer]]
                better = (scores[i] > own).sum() + ((scores[i] == own).sum() - 1) / 2
                fact.now, fact.now_rank = self.entities[int(current[best_answer])], 1 + float(better)
            facts.append(fact)
        return facts

    def _last_true(self, quad: Tensor) -> int:
        """The last step before the quad's at which its triple held."""
        time = int(quad[3])
        before = self.timeline.truth.between(time - self.window, time - 1).facts
        return int(before[(before[:, :3] == quad[:3]).all(1), LAST].max())


def _order(fact: RankedDeletedFact) -> tuple[bool, bool, float]:
    """Clear mistakes first: another answer is true now, and ranks lower."""
    outranked = fact.now_rank is not None and fact.now_rank < fact.rank
    return fact.now is None, outranked, fact.rank
