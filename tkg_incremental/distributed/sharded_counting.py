"""Ranks among candidates that are sharded over processes: each process scores its own, and the counts are summed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.distributed.shards import Shards
from tkg_incremental.ops.keys import find
from tkg_incremental.ops.ranking import BlockScores, RankedAnswers, block_sizes, chunks_of, pairs_of
from tkg_incremental.ops.scores import Similarity


def count_sharded(
    sets: Sequence[RankedAnswers], candidates: Tensor, columns: Tensor, similarity: Similarity, shards: Shards
) -> list[Tensor]:
    """:func:`~tkg_incremental.ops.ranking.count_ranks` of several sets of answers, on all processes.

    Args:
        sets: The answers, the same on all processes.
        candidates: ``[n, d]`` vectors of the candidates of this process.
        columns: ``[n]`` their positions among all candidates, ascending.
        similarity: How queries and candidates are compared.
        shards: The processes.
    """
    everything = torch.cat([_count(answers, candidates, columns, similarity, shards) for answers in sets])
    with shards.communicator.translate_errors("ranks"):
        dist.all_reduce(everything)
    return list(everything.split([len(answers) for answers in sets]))


def _count(
    answers: RankedAnswers, candidates: Tensor, columns: Tensor, similarity: Similarity, shards: Shards
) -> Tensor:
    """``[P, 4]`` this process' part of better, tied, ignored better and ignored tied."""
    counts = torch.empty(len(answers), 4, dtype=torch.long, device=candidates.device)
    column, is_own = find(columns, answers.column)
    column[~is_own] = -1
    place, is_here = find(columns, answers.ignored[1])
    ignored = answers.ignored[0][is_here], place[is_here]
    width, at_a_time, _ = block_sizes(shards.stride)  # the same on all processes, which exchange scores in each chunk
    room = candidates.new_empty(min(at_a_time, len(answers)) * width)
    for some in chunks_of(answers.column, shards.stride):
        scores = BlockScores(answers.query, answers.owner[some], candidates, similarity, width, room)
        # The owner of the answer provides its score, from a product of the same shape as on the other processes.
        own = scores.at(column[some])
        with shards.communicator.translate_errors("scores"):
            dist.all_reduce(own)
        counts[some] = scores.count(own, column[some], pairs_of(ignored, some))
    return counts
