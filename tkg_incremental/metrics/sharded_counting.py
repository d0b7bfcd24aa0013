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
from tkg_incremental.ops.ranking import Blocking, BlockScores, RankCounts, pairs_of
from tkg_incremental.ops.scores import Similarity

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
    counts = torch.empty(len(answers), 4, dtype=torch.long, device=candidates.device)
    column = _find(answers.column, columns)
    place = _find(answers.ignored[1], columns)
    is_here = place >= 0
    ignored = answers.ignored[0][is_here], place[is_here]
    blocking = Blocking(shards.stride)  # the same for every process: they meet in each chunk
    room = blocking.room(candidates, len(answers))
    for some in blocking.chunks(answers.column):
        scores = BlockScores(answers.query, answers.owner[some], candidates, similarity, blocking.width, room)
        # Whoever has the answer says what its score is, from a product of the shape that the others are compared in.
        own = scores.at(column[some])
        with shards.world.talking("scores"):
            dist.all_reduce(own)
        counts[some] = scores.count(own, column[some], pairs_of(ignored, some))
    return counts


def _find(wanted: Tensor, columns: Tensor) -> Tensor:
    """Where columns stand among those that are here, or -1."""
    if len(columns) == 0:
        return torch.full_like(wanted, -1)
    place = torch.searchsorted(columns, wanted).clamp_(max=len(columns) - 1)
    return torch.where(columns[place] == wanted, place, -1)
