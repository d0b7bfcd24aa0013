"""Finding handovers: questions whose one answer gives way to another."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.data import FactTable, Timeline
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.ops.answers import REL, SIDES, TIME, Side, query_columns
from tkg_incremental.ops.keys import lexsort, pack, segment_arange

# Facts that overlap for a few steps, or leave a gap of a few, still hand over: with steps of several years the
# old and the new holder of an office often share one.
MAX_GAP = 5

# A relation that mostly has one answer at a time: with fewer, a change of the answer says little.
_LEAST_SINGLE = 0.7


class QuestionIds(NamedTuple):
    """A question by ids: the side asked for, the entity on the other side, the relation."""

    side: Side
    given: int
    rel: int


class Handovers(NamedTuple):
    """All handovers of one side, each ``[H]``; ``single`` is ``[num_relations]``, see :func:`find_handovers`."""

    given: Tensor
    rel: Tensor
    old: Tensor
    new: Tensor
    time: Tensor
    single: Tensor


def all_facts(timeline: Timeline) -> FactTable:
    """The rows of all splits, each once: what is true."""
    rows = torch.cat([timeline.split(name).rows for name in SPLITS])
    return FactTable(rows, timeline.num_entities, timeline.num_relations, timeline.num_steps).unique()


def find_handovers(truth: Tensor, timeline: Timeline, side: Side) -> Handovers:
    """Where a question has one answer and, at the next step at which it again has one, another.

    Also tells for each relation the share of its questions that have exactly one answer.

    Args:
        truth: ``[N, 4]`` rows of all splits, each once.
        timeline: The graph.
        side: The side that is asked for.
    """
    given, asked = query_columns(side)
    sizes = (timeline.num_entities, timeline.num_relations, timeline.num_steps)
    key = pack([truth[:, given], truth[:, REL], truth[:, TIME]], sizes)
    key, order = torch.sort(key, stable=True)
    rows = truth[order]
    distinct, place, counts = torch.unique_consecutive(key, return_inverse=True, return_counts=True)
    alone = rows[counts[place] == 1]

    before, after = alone[:-1], alone[1:]
    changed = (
        (before[:, given] == after[:, given])
        & (before[:, REL] == after[:, REL])
        & (before[:, asked] != after[:, asked])
        & (after[:, TIME] - before[:, TIME] <= MAX_GAP)
        & (after[:, TIME] >= timeline.base_step)
    )
    before, after = before[changed], after[changed]

    relation = distinct // timeline.num_steps % timeline.num_relations
    asked_of = torch.bincount(relation, minlength=timeline.num_relations)
    single = torch.bincount(alone[:, REL], minlength=timeline.num_relations) / asked_of.clamp(min=1)
    return Handovers(after[:, given], after[:, REL], before[:, asked], after[:, asked], after[:, TIME], single)


def choose_questions(handovers: dict[Side, Handovers], timeline: Timeline, count: int) -> list[QuestionIds]:
    """The questions to follow: of every relation in turn, those about the entity with the most facts first.

    Args:
        handovers: By side.
        timeline: The graph.
        count: At most so many questions.
    """
    degree = torch.zeros(timeline.num_entities, dtype=torch.long, device=timeline.device)
    for column in (0, 2):
        degree += torch.bincount(timeline.train.rows[:, column], minlength=timeline.num_entities)
    found: list[tuple[int, int, QuestionIds]] = []
    for side in SIDES:
        changes = handovers[side]
        wanted = changes.single[changes.rel] >= _LEAST_SINGLE
        sizes = (timeline.num_relations, timeline.num_entities)
        questions = torch.unique(pack([changes.rel[wanted], changes.given[wanted]], sizes))
        rel, given = questions // timeline.num_entities, questions % timeline.num_entities
        by_fame = lexsort(rel, degree.max() - degree[given])
        rel, given = rel[by_fame], given[by_fame]
        _, per_relation = torch.unique_consecutive(rel, return_counts=True)
        turn = segment_arange(per_relation)
        size = torch.repeat_interleave(per_relation, per_relation)
        rows = torch.stack([turn, -size, given, rel], dim=1)[turn < count].tolist()
        found += [(t, s, QuestionIds(side, g, r)) for t, s, g, r in rows]
    return [question for _, _, question in sorted(found)[:count]]
