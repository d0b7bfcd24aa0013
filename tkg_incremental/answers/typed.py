"""Ranks among candidates of the right type: entities that were on that side of the relation in some train fact."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.metrics.evaluator import eval_mode
from tkg_incremental.metrics.functional import hits_at, mean_reciprocal_rank
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import FIRST, REL, SIDES, TIME, query_columns
from tkg_incremental.ops.keys import find
from tkg_incremental.seeding import make_generator

_HITS = (1, 3, 10)


@torch.no_grad()
def typed_ranks(model: TKGModel, timeline: Timeline, quads: Tensor, last_step: int, any_type: bool = False) -> Tensor:
    """Filtered ranks ``[2n]`` of quads as tail and head queries; ties count half.

    Args:
        model: The model.
        timeline: The graph; other true answers in any split are left out.
        quads: ``[n, 4]`` quads.
        last_step: Train facts until this step define the types.
        any_type: Rank the entities known at the step of a quad instead, as the paper does. An answer that is no
            candidate has rank infinity.
    """
    facts = timeline.observed.facts
    facts = facts[facts[:, FIRST] <= last_step]
    ranks = []
    # Quads with the same candidates.
    kind = quads[:, TIME if any_type else REL]
    for number in torch.unique(kind).tolist():
        asked = quads[kind == number]
        for side in SIDES:
            answer = query_columns(side)[1]
            alike = timeline.known_entities(number) if any_type else facts[facts[:, REL] == number, answer]
            candidates = torch.unique(alike)
            if not len(candidates):
                ranks.append(torch.full((len(asked),), torch.inf, device=quads.device))
                continue
            with eval_mode(model):
                scores = model.score_candidates(asked, side, candidates)  # [B, n]
            place, is_there = find(candidates, asked[:, answer].contiguous())
            own = scores.gather(1, place[:, None])
            row, true = timeline.answers(side, "all").expand(asked)
            column, is_candidate = find(candidates, true)
            scores[row[is_candidate], column[is_candidate]] = -torch.inf  # the answer itself, too
            found = 1 + (scores > own).sum(1) + (scores == own).sum(1) / 2
            ranks.append(torch.where(is_there, found, torch.inf))
    return torch.cat(ranks) if ranks else torch.empty(0)


def type_constrained(
    model: TKGModel, timeline: Timeline, split: str, last_step: int, sample: int = 2000, seed: int = 0
) -> dict[str, dict[str, float]]:
    """MRR and Hits@k of held-out quads among all entities known at their step, and among those of the right type.

    Args:
        model: The model.
        timeline: The graph.
        split: ``"test"`` or ``"val"``.
        last_step: The last step that the model learnt.
        sample: Maximum number of quads, drawn from all steps until then.
        seed: Seed of the sample.

    Returns:
        The metrics for ``"all"`` and ``"typed"`` candidates; empty without quads.
    """
    quads = timeline.split(split).between(0, last_step)
    chosen = quads.sample(min(sample, len(quads)), make_generator(seed, "typed ranks")).to(timeline.device)
    if not len(chosen):
        return {}
    found = {}
    for name in ("all", "typed"):
        ranks = typed_ranks(model, timeline, chosen, last_step, any_type=name == "all")
        found[name] = {"MRR": mean_reciprocal_rank(ranks), **{f"Hits@{k}": hits_at(ranks, k) for k in _HITS}}
    return found
