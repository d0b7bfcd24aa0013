"""Deleted facts that a model still believes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data import FactTable, Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import HEAD, REL, SIDES, TAIL, Side
from tkg_incremental.report.changes import DeletedRecord, LingeringFact
from tkg_incremental.report.watch import raw_ranks

TOP = 10


class DeletedFacts:
    """Asks for both sides of deleted facts, and names those that come among the first ten.

    Args:
        timeline: The graph.
        truth: The rows of all splits, each once.
        window: How many steps back deleted facts reach.
        entities: Names of the entities.
        relations: Names of the relations.
        max_scores: How many scores a step may cost; more deleted facts are sampled.
        count: At most so many facts are named at each step.
    """

    def __init__(
        self,
        timeline: Timeline,
        truth: FactTable,
        window: int,
        entities: Sequence[str],
        relations: Sequence[str],
        max_scores: int,
        count: int,
    ) -> None:
        self.timeline, self.truth, self.window = timeline, truth, window
        self.entities, self.relations = entities, relations
        self.max_scores, self.count = max_scores, count

    def record(self, model: TKGModel, time: int, candidates: Tensor) -> DeletedRecord:
        """What the model after step ``time`` believes of the deleted facts of that step.

        Args:
            model: The model.
            time: The step.
            candidates: ``[m, d]`` vectors of the entities known at it.
        """
        deleted = self._sample(self.truth.lapsed(time, self.window), len(candidates), time)
        if len(deleted) == 0:
            return DeletedRecord(time, 0, 0, [])
        found = 0
        named: list[LingeringFact] = []
        for side in SIDES:
            ranks = raw_ranks(model, self.timeline, deleted, side, candidates)
            top = ranks <= TOP
            found += int(top.sum())
            named += self._name(model, deleted[top], ranks[top], side, candidates)
        named.sort(key=_order)
        return DeletedRecord(time, len(SIDES) * len(deleted), found, named[: self.count])

    def _sample(self, rows: Tensor, candidates: int, time: int) -> Tensor:
        """As many rows as may be scored. Not from the run's own generator: watching must not change it."""
        room = max(1, self.max_scores // (len(SIDES) * candidates))
        if len(rows) <= room:
            return rows
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(time))
        return rows[order[:room].to(rows.device)]

    def _name(
        self, model: TKGModel, rows: Tensor, ranks: Tensor, side: Side, candidates: Tensor
    ) -> list[LingeringFact]:
        index = self.timeline.answers(side, "all")
        queries = index.lookup(rows)
        # Something else is true now, then by rank: close to `_order`, which needs the ranks of what is true.
        best = torch.argsort(ranks + (index.counts[queries] == 0) * TOP, stable=True)[: self.count]
        rows, queries = rows[best], queries[best]
        scores = model.score_all(rows, side, candidates)
        facts = []
        for i, rank in enumerate(ranks[best].tolist()):
            head, rel, tail = rows[i, [HEAD, REL, TAIL]].tolist()
            fact = LingeringFact(
                self.entities[head], self.relations[rel], self.entities[tail], side, rank, self._last_true(rows[i])
            )
            _, columns = index.expand(queries[i : i + 1])
            if len(columns):
                leader = columns[scores[i, columns].argmax()]
                better = (scores[i] > scores[i, leader]).sum() + ((scores[i] == scores[i, leader]).sum() - 1) / 2
                fact.now = self.entities[int(self.timeline.order[leader])]
                fact.now_rank = 1 + float(better)
            facts.append(fact)
        return facts

    def _last_true(self, row: Tensor) -> int:
        """The last step before that of the row at which its triple held."""
        time = int(row[3])
        before = self.truth.between(time - self.window, time - 1)
        return int(before[(before[:, :3] == row[:3]).all(1), 3].max())


def _order(fact: LingeringFact) -> tuple[bool, bool, float]:
    """The plain mistakes first: something else is true now, and ranks lower."""
    outranked = fact.now_rank is not None and fact.now_rank < fact.rank
    return fact.now is None, outranked, fact.rank
