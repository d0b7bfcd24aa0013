"""Link prediction on facts that last: one rank per fact, not one per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.metrics.evaluator import eval_mode
from tkg_incremental.ops.answers import FIRST, LAST, REL, SIDES, TIME, Side, query_columns
from tkg_incremental.ops.keys import find_all

if TYPE_CHECKING:
    from tkg_incremental.models import TKGModel

# Facts ranked at a time: their scores are [facts, entities].
_FACTS = 256


@torch.no_grad()
def interval_ranks(model: TKGModel, timeline: Timeline, split: str = "test") -> Tensor:
    r"""One rank per fact and direction, as in the `"Temporal Knowledge Base Completion: New Algorithms and Evaluation
    Protocols" <https://arxiv.org/abs/2005.05035>`_ paper: tail queries of all facts, then head queries.

    The candidates are all entities, with their scores at the first step of the fact. At each step of the fact, other
    answers that are true at this step, in any split, are left out; the rank of the fact is the mean over its steps. A
    candidate that is true at some of the steps therefore counts for the others. Ties count as better.

    Args:
        model: The model.
        timeline: The graph.
        split: ``"test"`` or ``"val"``.

    Returns:
        ``[2F]`` ranks, not always whole numbers.
    """
    with eval_mode(model):
        return torch.cat([_side_ranks(model, timeline, timeline.split(split).facts, side) for side in SIDES])


def _side_ranks(model: TKGModel, timeline: Timeline, facts: Tensor, side: Side) -> Tensor:
    given, asked = query_columns(side)
    truth = timeline.truth.facts
    keys, order = torch.sort(truth[:, given] * timeline.num_relations + truth[:, REL], stable=True)
    truth = truth[order]
    wanted = facts[:, given] * timeline.num_relations + facts[:, REL]
    entities = torch.arange(timeline.num_entities, device=facts.device)
    ranks = torch.empty(len(facts), device=facts.device)
    for step in facts[:, FIRST].unique().tolist():
        candidates = model.candidate_vectors(entities, step)
        for rows in (facts[:, FIRST] == step).nonzero().squeeze(1).split(_FACTS):
            some = facts[rows]
            scores = model.score_all(some[:, : TIME + 1], side, candidates)
            better = scores >= scores.gather(1, some[:, asked, None])  # the fact itself, too, which is left out below
            row, place = find_all(keys, wanted[rows])
            known = truth[place]
            until, since = torch.minimum(known[:, LAST], some[row, LAST]), known[:, FIRST].clamp(min=step)
            share = (until - since + 1).clamp(min=0) / (some[row, LAST] - step + 1)
            left_out = ranks.new_zeros(len(some)).index_add_(0, row, share * better[row, known[:, asked]])
            ranks[rows] = 1 + better.sum(1) - left_out
    return ranks
