"""Ranks among candidates that are sharded over processes: each process scores its own, and the counts are summed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.distributed.sharded import ShardedModel
from tkg_incremental.distributed.shards import Shards
from tkg_incremental.metrics.counting import Answers, RankCounter
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.ranking import Blocking, BlockScores, RankCounts, pairs_of
from tkg_incremental.ops.scores import Similarity

# Encoding copies rows of all tables: a part at a time bounds the memory.
_ENCODED_AT_ONCE = 1 << 16


class ShardedRankCounter(RankCounter):
    """Counts ranks with a model of :func:`~tkg_incremental.distributed.shard_entities`.

    All processes take part in every step.
    """

    shares_steps = False

    def __call__(
        self, sets: Sequence[Answers], model: TKGModel, known: Tensor, step: int, communicator: Communicator = LOCAL
    ) -> list[RankCounts]:
        assert isinstance(model, ShardedModel)
        # The candidates whose rows this process has; ascending, so that a column is found by bisection.
        columns = model.shards.own(known).nonzero().squeeze(1)
        dtype = next(iter(model.local.values())).dtype
        here = model.only_own()
        candidates = torch.empty(len(columns), model.hidden_channels, device=known.device, dtype=dtype)
        for start in range(0, len(columns), _ENCODED_AT_ONCE):
            part = slice(start, start + _ENCODED_AT_ONCE)
            candidates[part] = here.candidate_vectors(known[columns[part]], step)
        counted = [_count(answers, candidates, columns, model.decoder.similarity, model.shards) for answers in sets]
        everything = torch.cat(counted)
        with model.shards.communicator.translate_errors("ranks"):
            dist.all_reduce(everything)
        return [RankCounts(*each.unbind(1)) for each in everything.split([len(answers) for answers in sets])]


def _count(answers: Answers, candidates: Tensor, columns: Tensor, similarity: Similarity, shards: Shards) -> Tensor:
    """``[P, 4]`` this process' part of better, tied, ignored better and ignored tied."""
    counts = torch.empty(len(answers), 4, dtype=torch.long, device=candidates.device)
    column = _find(answers.column, columns)
    place = _find(answers.ignored[1], columns)
    is_here = place >= 0
    ignored = answers.ignored[0][is_here], place[is_here]
    blocking = Blocking(shards.stride)  # the same on all processes, which exchange scores in each chunk
    room = blocking.room(candidates, len(answers))
    for some in blocking.chunks(answers.column):
        scores = BlockScores(answers.query, answers.owner[some], candidates, similarity, blocking.width, room)
        # The owner of the answer provides its score, from a product of the same shape as on the other processes.
        own = scores.at(column[some])
        with shards.communicator.translate_errors("scores"):
            dist.all_reduce(own)
        counts[some] = scores.count(own, column[some], pairs_of(ignored, some))
    return counts


def _find(wanted: Tensor, columns: Tensor) -> Tensor:
    """The positions of columns among those of this process, or -1."""
    if len(columns) == 0:
        return torch.full_like(wanted, -1)
    place = torch.searchsorted(columns, wanted).clamp_(max=len(columns) - 1)
    return torch.where(columns[place] == wanted, place, -1)
