"""Ranks of the quads of one step, and the queries they come from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.metrics.counting import Answers
from tkg_incremental.metrics.exclusion import Exclusion, Ranks, pair_up
from tkg_incremental.ops.answers import REL, AnswerIndex, Side, query_columns
from tkg_incremental.ops.ranking import RankCounts

if TYPE_CHECKING:
    from tkg_incremental.models import TKGModel


@dataclass
class StepRanks:
    """Ranks of one step's quads: tail queries of all quads, then head queries.

    Args:
        filtered: ``[n]`` ranks without other true answers.
        raw: ``[n]`` ranks among all candidates.
        deleted: ``[Z]`` raw ranks of the deleted answers of every query.
        deleted_row: ``[Z]`` the entry of ``raw`` each belongs to.
        deleted_query: ``[Z]`` the distinct query each belongs to.
    """

    filtered: Tensor
    raw: Tensor
    deleted: Tensor
    deleted_row: Tensor
    deleted_query: Tensor

    @classmethod
    def cat(cls, parts: list[StepRanks]) -> StepRanks:
        """Joins the ranks of several sides; entries and queries are numbered through."""
        offset = 0
        for part in parts:
            part.deleted_row += offset
            part.deleted_query += offset  # there are at most as many queries as entries
            offset += len(part.raw)
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def deleted_once_per_query(self) -> Tensor:
        """``[Y]`` raw ranks of deleted answers, those of each distinct query once."""
        query, row = self.deleted_query, self.deleted_row
        first = torch.full((int(query.max()) + 1 if len(query) else 0,), torch.iinfo(torch.long).max, device=row.device)
        first.scatter_reduce_(0, query, row, "amin")
        return self.deleted[row == first[query]]


@dataclass
class SideQueries:
    """The distinct queries of one side of some quads, and the answers to rank.

    Args:
        query_of_row: ``[n]`` the query of each quad.
        by_query: ``[n]`` quads sorted by query.
        current: The answers of the quads, in the order of ``by_query``.
        deleted: The deleted answers of each query.
        exclusion: The candidates that rank behind all others; :obj:`None` for none.
    """

    query_of_row: Tensor
    by_query: Tensor
    current: Answers
    deleted: Answers
    exclusion: Exclusion | None = None

    @classmethod
    def of(
        cls,
        model: TKGModel,
        timeline: Timeline,
        quads: Tensor,
        side: Side,
        deleted: Tensor,
        num_candidates: int,
        excluded: Tensor | None = None,
    ) -> SideQueries:
        """The queries of one side.

        Args:
            model: Gives the query vectors.
            timeline: The graph.
            quads: ``[n, 4]`` quads of one step.
            side: The side that is asked for.
            deleted: ``[D, 4]`` deleted facts as quads of the same step.
            num_candidates: The candidates are the first ones of the timeline's order.
            excluded: ``[E, 4]`` quads of the same step whose answers rank behind all others; :obj:`None` for none.
        """
        given, asked = query_columns(side)
        # Quads with the same query are scored once.
        key = quads[:, given] * timeline.num_relations + quads[:, REL]
        queries, query_of_row = torch.unique(key, return_inverse=True)
        by_query = torch.argsort(query_of_row, stable=True)
        example = torch.empty_like(queries).scatter_(0, query_of_row, torch.arange(len(quads), device=quads.device))
        distinct = quads[example]
        query = model.query_vectors(distinct, side)
        owner = query_of_row[by_query]
        true_query, true_answer = timeline.answers(side, "all").expand(distinct)
        row, place = pair_up(owner, torch.bincount(true_query, minlength=len(queries)))
        ignored = row, timeline.column_of[true_answer[place]]
        answers = Answers(query, owner, timeline.column_of[quads[by_query, asked]], ignored)
        former_query, former_column = _columns(timeline, deleted, side, distinct)
        none = former_query[:0]
        former_answers = Answers(query, former_query, former_column, (none, none))
        exclusion = None
        if excluded is not None:
            exclusion = Exclusion(*_columns(timeline, excluded, side, distinct), num_candidates)
        return cls(query_of_row, by_query, answers, former_answers, exclusion)

    @property
    def sets(self) -> list[Answers]:
        """The answers to count ranks of."""
        sets = [self.current, self.deleted]
        return sets if self.exclusion is None else [self.exclusion.twice(answers) for answers in sets]

    def ranks(self, counts: RankCounts, deleted: RankCounts) -> StepRanks:
        """The ranks from the counts of :attr:`sets`."""
        now: RankCounts | Ranks = counts
        former: RankCounts | Ranks = deleted
        if self.exclusion is not None:
            now, former = self.exclusion.ranks(self.current, counts), self.exclusion.ranks(self.deleted, deleted)
        filtered, raw = (torch.empty(len(self.by_query), device=self.by_query.device) for _ in range(2))
        filtered[self.by_query], raw[self.by_query] = now.filtered, now.raw
        # The deleted answers of a query count for every quad that has this query.
        owner = self.deleted.owner
        row, place = pair_up(self.query_of_row, torch.bincount(owner, minlength=len(self.deleted.query)))
        return StepRanks(filtered, raw, former.raw[place], row, owner[place])


def _columns(timeline: Timeline, facts: Tensor, side: Side, queries: Tensor) -> tuple[Tensor, Tensor]:
    """The answers to queries, quads of one step, in facts of this step: (query, column), each ``[M]``, by query."""
    index = AnswerIndex(one_step_facts(facts), side, timeline.num_entities, timeline.num_relations)
    query, answer = index.expand(queries)
    return query, timeline.column_of[answer]
