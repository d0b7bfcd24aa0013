"""Ranks of the quads of one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.metrics.exclusion import ignore_excluded, ranks_with_excluded
from tkg_incremental.ops.answers import REL, AnswerIndex, Side, query_columns
from tkg_incremental.ops.keys import find_all
from tkg_incremental.ops.ranking import RankedAnswers, ranks_of

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


def rank_side(
    model: TKGModel,
    timeline: Timeline,
    quads: Tensor,
    side: Side,
    count: Callable[[Sequence[RankedAnswers]], list[Tensor]],
    num_candidates: int,
    deleted: Tensor,
    excluded: Tensor | None = None,
) -> StepRanks:
    """Ranks of one side of the quads of a step.

    Args:
        model: Gives the query vectors.
        timeline: The graph.
        quads: ``[n, 4]`` quads of one step.
        side: The side that is asked for.
        count: Counts ranks (:meth:`~tkg_incremental.models.TKGModel.rank_counter`).
        num_candidates: The candidates are the first ones of the timeline's order.
        deleted: ``[D, 4]`` deleted facts as quads of the same step.
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
    row, place = find_all(true_query, owner)
    ignored = row, timeline.column_of[true_answer[place]]
    current = RankedAnswers(query, owner, timeline.column_of[quads[by_query, asked]], ignored)
    former_query, former_column = _columns(timeline, deleted, side, distinct)
    former = RankedAnswers(query, former_query, former_column, (former_query[:0], former_query[:0]))
    if excluded is None:
        (now_filtered, now_raw), (_, former_raw) = map(ranks_of, count([current, former]))
    else:
        last = _columns(timeline, excluded, side, distinct), num_candidates
        counts = count([ignore_excluded(answers, *last) for answers in (current, former)])
        now_filtered, now_raw = ranks_with_excluded(current, *last, counts[0])
        former_raw = ranks_with_excluded(former, *last, counts[1])[1]
    filtered, raw = (torch.empty(len(quads), device=quads.device) for _ in range(2))
    filtered[by_query], raw[by_query] = now_filtered, now_raw
    # The deleted answers of a query count for every quad that has this query.
    row, place = find_all(former_query, query_of_row)
    return StepRanks(filtered, raw, former_raw[place], row, former_query[place])


def _columns(timeline: Timeline, facts: Tensor, side: Side, queries: Tensor) -> tuple[Tensor, Tensor]:
    """The answers to queries, quads of one step, in facts of this step: (query, column), each ``[M]``, by query."""
    index = AnswerIndex(one_step_facts(facts), side, timeline.num_entities, timeline.num_relations)
    query, answer = index.expand(queries)
    return query, timeline.column_of[answer]
