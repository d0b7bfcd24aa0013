"""Counting ranks among candidates that are spread over processes: each scores its own, and the counts are summed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.distributed.sharded import ShardedEncoder
from tkg_incremental.distributed.shards import Shards
from tkg_incremental.metrics.counting import Answers
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.ranking import RankCounts, answers_at_a_time, better_and_level
from tkg_incremental.ops.scores import Similarity, all_scores

# Encoding copies rows of all tables: of a part of them, where memory is short.
_ENCODED_AT_A_TIME = 1 << 16


def count_sharded(sets: Sequence[Answers], model: TKGModel, known: Tensor, step: int) -> list[RankCounts]:
    """The counts of each set of answers among the known entities, on all processes.

    Args:
        sets: The answers, the same on all processes.
        model: A model of :func:`~tkg_incremental.distributed.shard_entities`.
        known: ``[n]`` the candidates, the same on all processes; an answer's column is its place among them.
        step: The step whose vectors they have.
    """
    encoder = model.encoder
    assert isinstance(encoder, ShardedEncoder)
    # Of the candidates, those whose rows are here; ascending, so that a column is found among them by bisection.
    columns = encoder.shards.own(known).nonzero().squeeze(1)
    dtype = next(iter(encoder.local.values())).dtype
    here = TKGModel(encoder.only_own(), model.decoder)
    candidates = torch.empty(len(columns), encoder.hidden_channels, device=known.device, dtype=dtype)
    for start in range(0, len(columns), _ENCODED_AT_A_TIME):
        part = slice(start, start + _ENCODED_AT_A_TIME)
        candidates[part] = here.candidate_vectors(known[columns[part]], step)
    counted = [_count(answers, candidates, columns, model.decoder.similarity, encoder.shards) for answers in sets]
    everything = torch.cat(counted)
    with encoder.shards.world.talking("ranks"):
        dist.all_reduce(everything)
    return [RankCounts(*each.unbind(1)) for each in everything.split([len(answers) for answers in sets])]


def _count(answers: Answers, candidates: Tensor, columns: Tensor, similarity: Similarity, shards: Shards) -> Tensor:
    """``[P, 4]`` this process' contributions to better, tied, ignored better and ignored tied."""
    parts = [torch.empty(0, 4, dtype=torch.long, device=candidates.device)]
    at_a_time = answers_at_a_time(shards.stride)  # as many for every process: they meet after each product
    for start in range(0, len(answers), at_a_time):
        part = answers.part(start, start + at_a_time)
        first = int(part.owner[0])
        scores = all_scores(part.query[first : int(part.owner[-1]) + 1], candidates, similarity)[part.owner - first]
        place, is_here = _find(part.column, columns)
        # Whoever has the answer says what its score is, from the same product that the others are compared in.
        own = scores.new_zeros(len(part))
        own[is_here] = scores[is_here, place[is_here]]
        with shards.world.talking("scores"):
            dist.all_reduce(own)
        answer, other = part.ignored
        place, is_there = _find(other, columns)
        answer, other, place = answer[is_there], other[is_there], place[is_there]
        theirs, mine = scores[answer, place], own[answer]
        counts = scores.new_zeros(len(part), 4, dtype=torch.long)
        counts[:, 2].index_add_(0, answer, (theirs > mine).long())
        counts[:, 3].index_add_(0, answer, ((theirs == mine) & (other != part.column[answer])).long())
        counts[:, 0], level = better_and_level(scores, own[:, None])
        counts[:, 1] = level - is_here.long()  # itself, where it is
        parts.append(counts)
    return torch.cat(parts)


def _find(wanted: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Where columns stand among those that are here, and whether they do."""
    if len(columns) == 0:
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    place = torch.searchsorted(columns, wanted).clamp_(max=len(columns) - 1)
    return place, columns[place] == wanted
