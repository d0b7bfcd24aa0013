"""Ranks test rows with a model and reads the metrics off."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tkg_incremental.data import FactTable, Timeline
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.distributed.sharded import is_sharded
from tkg_incremental.distributed.world import ALONE, World
from tkg_incremental.metrics import functional as metric
from tkg_incremental.metrics.counting import Answers, count_together
from tkg_incremental.metrics.sharded_counting import count_sharded
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import SIDES, AnswerIndex, Side, query_columns
from tkg_incremental.ops.keys import segment_arange
from tkg_incremental.ops.ranking import RankCounts


@dataclass
class StepRanks:
    """Ranks of one step's rows, both directions one after the other.

    Args:
        filtered: ``[n]`` ranks without other true answers.
        raw: ``[n]`` ranks among all candidates.
        deleted: ``[Z]`` raw ranks of the deleted answers of every row.
        deleted_row: ``[Z]`` the row each belongs to.
        deleted_query: ``[Z]`` the distinct query each belongs to.
    """

    filtered: Tensor
    raw: Tensor
    deleted: Tensor
    deleted_row: Tensor
    deleted_query: Tensor


class Evaluator:
    r"""Computes C, A, DF, RRD and the classical metrics on one split.

    The candidates of a query at step :math:`j` are the entities known at :math:`j`; the filter is every true answer
    at :math:`j` in any split. DF and RRD use raw ranks; deleted answers are those true in the ``window`` steps before
    and not now, in any split.

    Args:
        timeline: The graph.
        split: ``"test"`` or ``"val"``.
        window: How many steps back deleted facts reach.
        per_query: Count the deleted facts of each distinct query once for DF, as the released code does, instead
            of once per row, as the paper's equation does.
        average_from: First step that counts for A: 0 as in the paper; the released code begins with the base step.
        world: The processes that share the work. All of them have to ask for the same, and get the same bits.
    """

    def __init__(
        self,
        timeline: Timeline,
        split: str = "test",
        window: int = 10,
        per_query: bool = False,
        average_from: int = 0,
        world: World = ALONE,
    ) -> None:
        self.world = world
        self.timeline, self.split, self.window = timeline, split, window
        self.per_query, self.average_from = per_query, average_from
        self.table = timeline.split(split)
        rows = torch.cat([timeline.split(name).rows for name in SPLITS])
        self._truth = FactTable(rows, timeline.num_entities, timeline.num_relations, timeline.num_steps).unique()

    @torch.no_grad()
    def rank(self, model: TKGModel, step: int, deleted: bool = False, world: World | None = None) -> StepRanks | None:
        """Ranks of the split's rows at one step; :obj:`None` if there are none.

        Args:
            model: The model.
            step: The step.
            deleted: Rank deleted answers, too.
            world: The processes that share the work; the evaluator's by default.
        """
        rows = self.table.at(step)
        if len(rows) == 0:
            return None
        lapsed = self._truth.lapsed(step, self.window) if deleted else rows[:0]
        sides = [self._ask(model, rows, side, lapsed) for side in SIDES]
        sets = [answers for side in sides for answers in (side.current, side.former)]
        counts = iter(self._count(sets, model, step, world or self.world))
        parts = [side.ranks(next(counts), next(counts)) for side in sides]
        for i, part in enumerate(parts):  # number rows and queries through both directions
            part.deleted_row += i * len(rows)
            part.deleted_query += i * len(rows)
        return StepRanks(*(torch.cat([getattr(part, name) for part in parts]) for name in StepRanks.__annotations__))

    def _count(self, sets: list[Answers], model: TKGModel, step: int, world: World) -> list[RankCounts]:
        known = self.timeline.known_entities(step)
        if is_sharded(model):
            return count_sharded(sets, model, known, step)
        return count_together(sets, model.candidate_vectors(known, step), model.decoder.similarity, world)

    def _divide(self, model: TKGModel) -> World:
        """Who divides steps among themselves. Tables that are spread over processes take all of them at every step."""
        return ALONE if is_sharded(model) else self.world

    def _ask(self, model: TKGModel, rows: Tensor, side: Side, lapsed: Tensor) -> _Asked:
        line = self.timeline
        truth = line.answers(side, "all")
        # Rows that ask the same question are scored once.
        queries, query_of_row = torch.unique(truth.lookup(rows), return_inverse=True)
        by_query = torch.argsort(query_of_row, stable=True)
        asked = torch.empty_like(queries).scatter_(0, query_of_row, torch.arange(len(rows), device=rows.device))
        query = model.query_vectors(rows[asked], side)
        answer = line.column_of[rows[by_query, query_columns(side)[1]]]
        ignored = truth.expand(queries[query_of_row[by_query]])
        former = AnswerIndex(lapsed, side, line.column_of, line.num_relations, line.num_steps)
        owner, column = former.expand(former.lookup(rows[asked]))
        return _Asked(
            query_of_row,
            by_query,
            Answers(query, query_of_row[by_query], answer, ignored),
            Answers(query, owner, column, (owner[:0], column[:0])),
        )

    def current(self, model: TKGModel, step: int, k: int = 10) -> float:
        """C at one step: what early stopping watches."""
        ranks = self.rank(model, step)
        return metric.hits_at(ranks.filtered, k) if ranks else float("nan")

    def hits(self, model: TKGModel, first: int, last: int, k: int = 10) -> float:
        """Hits@k over the pooled rows of several steps."""
        world = self._divide(model)
        mine = range(first + world.rank, last + 1, world.size)
        found = [ranks.filtered for step in mine if (ranks := self.rank(model, step, world=ALONE))]
        # In another order than by step; what is counted here does not depend on it.
        return metric.hits_at(torch.cat(world.gather(torch.cat([torch.empty(0, device=model.device), *found]))), k)

    def evaluate(self, model: TKGModel, step: int) -> tuple[dict[str, float], Tensor]:
        r"""All metrics of the model after ``step``, and its row of :math:`\alpha`, ``[step + 1]``."""
        alpha = torch.full((step + 1,), float("nan"), dtype=torch.double)
        world = self._divide(model)
        for j in range(world.rank, step, world.size):
            ranks = self.rank(model, j, world=ALONE)
            if ranks:
                alpha[j] = metric.hits_at(ranks.filtered)
        for rank, theirs in enumerate(world.gather(alpha)):
            alpha[rank : step : world.size] = theirs[rank : step : world.size]
        now = self.rank(model, step, deleted=True)
        if now is None:
            return self._averages(alpha), alpha
        alpha[step] = metric.hits_at(now.filtered)
        deleted = now.deleted
        if self.per_query:
            deleted = deleted[_first_of_each_row(now.deleted_query, now.deleted_row)]
        asks_for_newcomer = self._asks_for_newcomer(step)
        newcomers = {"C@10 newcomers": metric.hits_at(now.filtered[asks_for_newcomer])}
        return {
            "C@10": float(alpha[step]),
            "DF@10": metric.deleted_hits_at(deleted),
            "RRD": metric.reciprocal_rank_difference(now.raw, now.deleted, now.deleted_row),
            **self._averages(alpha),
            **(newcomers if asks_for_newcomer.any() else {}),
            "MRR": metric.mean_reciprocal_rank(now.filtered),
            "Hits@1": metric.hits_at(now.filtered, 1),
            "Hits@3": metric.hits_at(now.filtered, 3),
            "MR": metric.mean_rank(now.filtered),
            "raw C@10": metric.hits_at(now.raw),
            "raw MRR": metric.mean_reciprocal_rank(now.raw),
        }, alpha

    def _asks_for_newcomer(self, step: int) -> Tensor:
        """Which answers of a step's rows came after the base model, both directions one after the other."""
        rows = self.table.at(step)
        answers = torch.cat([rows[:, query_columns(side)[1]] for side in SIDES])
        return self.timeline.first_seen[answers] > self.timeline.base_step

    def _averages(self, alpha: Tensor) -> dict[str, float]:
        """A as asked for, and over the incremental steps alone, which is what the paper's tables hold."""
        incremental = metric.average(alpha, self.timeline.base_step)
        return {"A@10": metric.average(alpha, self.average_from), "A@10 incremental": incremental}

    def __repr__(self) -> str:
        return f"Evaluator({self.split}, window={self.window}, per_query={self.per_query})"


@dataclass
class _Asked:
    """The questions of one side: those the rows ask, and the answers to rank."""

    query_of_row: Tensor
    by_query: Tensor
    current: Answers
    former: Answers

    def ranks(self, counts: RankCounts, former: RankCounts) -> StepRanks:
        filtered, raw = (torch.empty(len(self.by_query), device=self.by_query.device) for _ in range(2))
        filtered[self.by_query], raw[self.by_query] = counts.filtered, counts.raw
        # Every row that asks the question meets the deleted answers again.
        owner = self.former.owner
        row, place = _pair_up(self.query_of_row, torch.bincount(owner, minlength=len(self.former.query)))
        return StepRanks(filtered, raw, former.raw[place], row, owner[place])


def _pair_up(group_of_row: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """For each row and each member of its group: (row, place of the member when groups stand end to end)."""
    counts = members[group_of_row]
    row = torch.repeat_interleave(torch.arange(len(group_of_row), device=members.device), counts)
    start = torch.cumsum(members, 0) - members
    return row, start[group_of_row[row]] + segment_arange(counts)


def _first_of_each_row(query: Tensor, row: Tensor) -> Tensor:
    """Keeps the entries of one row (the first) for each query."""
    first = torch.full((int(query.max()) + 1 if len(query) else 0,), torch.iinfo(torch.long).max, device=row.device)
    first.scatter_reduce_(0, query, row, "amin")
    return row == first[query]
