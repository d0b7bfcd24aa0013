"""Handovers: questions whose only answer is replaced by another one."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.ops.answers import FIRST, LAST, REL, SIDES, Side, query_columns
from tkg_incremental.ops.keys import lexsort, pack, segment_arange

# Facts that overlap for a few steps, or leave a gap of a few, still count as a handover: with steps of several years
# the old and the new holder of an office often share one.
MAX_GAP = 5

# Share of the steps at which questions of a relation have one answer; below it, a change of the answer means little.
_MIN_SINGLE = 0.7


#: A question by ids: the side asked for, the entity on the other side, the relation.
QuestionIds = tuple[Side, int, int]


def find_handovers(timeline: Timeline, side: Side) -> tuple[Tensor, Tensor]:
    """Where a question has one answer and, at the next step at which it has one again, another.

    Facts of all splits count. The cost follows the number of facts, not their durations.

    Args:
        timeline: The graph.
        side: The side that is asked for.

    Returns:
        ``[H, 5]`` handovers: given entity, relation, old answer, new answer, and the first step at which the new one is
        the only one; and ``[num_relations]`` the share of the steps of each relation's questions with exactly one
        answer.
    """
    facts = timeline.truth.facts
    given, asked = query_columns(side)
    # Every fact is an event where it begins and one after it ends. Between two events of a question, its number of
    # answers is constant, and where it is 1, the running sum of the answers' ids is the answer.
    key = pack([facts[:, given], facts[:, REL]], [timeline.num_entities, timeline.num_relations]).repeat(2)
    time = torch.cat([facts[:, FIRST], facts[:, LAST] + 1])
    sign = torch.ones_like(key)
    sign[len(facts) :] = -1
    order = lexsort(key, time)
    key, time = key[order], time[order]
    count = torch.cumsum(sign[order], 0)
    answer = torch.cumsum((sign * facts[:, asked].repeat(2))[order], 0)

    span = ((key[1:] == key[:-1]) & (time[1:] > time[:-1]) & (count[:-1] > 0)).nonzero().squeeze(1)
    length = time[span + 1] - time[span]
    relation = key[span] % timeline.num_relations
    alone = count[span] == 1
    steps, single = (
        torch.zeros(timeline.num_relations, device=facts.device, dtype=torch.long).index_add_(0, relation, each)
        for each in (length, length * alone)
    )

    span, length = span[alone], length[alone]
    before, after = span[:-1], span[1:]
    last = time[before] + length[:-1] - 1
    changed = (
        (key[before] == key[after])
        & (answer[before] != answer[after])
        & (time[after] - last <= MAX_GAP)
        & (time[after] >= timeline.base_step)
    )
    before, after = before[changed], after[changed]
    entity, rel = key[after] // timeline.num_relations, key[after] % timeline.num_relations
    handovers = torch.stack([entity, rel, answer[before], answer[after], time[after]], dim=1)
    return handovers, single / steps.clamp(min=1)


def choose_questions(handovers: dict[Side, tuple[Tensor, Tensor]], timeline: Timeline, count: int) -> list[QuestionIds]:
    """The questions to follow: of each relation in turn, those about the entity with the most quads first.

    Args:
        handovers: What :func:`find_handovers` returns for each side.
        timeline: The graph.
        count: Maximum number of questions.
    """
    facts = timeline.train.facts
    degree = torch.zeros(timeline.num_entities, dtype=torch.long, device=timeline.device)
    for column in (0, 2):
        degree.index_add_(0, facts[:, column], facts[:, LAST] - facts[:, FIRST] + 1)
    found: list[tuple[int, int, QuestionIds]] = []
    for side in SIDES:
        changes, single = handovers[side]
        given, rel = changes[single[changes[:, 1]] >= _MIN_SINGLE, :2].unbind(1)
        questions = torch.unique(pack([rel, given], (timeline.num_relations, timeline.num_entities)))
        rel, given = questions // timeline.num_entities, questions % timeline.num_entities
        by_degree = lexsort(rel, degree.max() - degree[given])
        rel, given = rel[by_degree], given[by_degree]
        _, per_relation = torch.unique_consecutive(rel, return_counts=True)
        place = segment_arange(per_relation)
        size = torch.repeat_interleave(per_relation, per_relation)
        rows = torch.stack([place, -size, given, rel], dim=1)[place < count].tolist()
        found += [(t, s, (side, g, r)) for t, s, g, r in rows]
    return [question for _, _, question in sorted(found)[:count]]
