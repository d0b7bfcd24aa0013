"""Ranks by counting what is better: no sort, no mask, and additive over shards of the candidates."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from tkg_incremental.ops.scores import Similarity, all_scores

# Scores held at a time: large enough for an efficient product, small enough to stay in the cache while counted.
_SCORES_AT_A_TIME = 1 << 21
_SIGNS_AT_A_TIME = 1 << 20
# A product of fewer rows than this reads the candidates for too little work.
_QUERIES_AT_A_TIME = 32


@dataclass
class RankCounts:
    """How many candidates are better than, or tied with, each answer; all ``[P]``.

    Args:
        better: Candidates with a higher score.
        tied: Other candidates with the same score.
        ignored_better: Those of ``better`` that a filtered rank leaves out.
        ignored_tied: Those of ``tied`` that a filtered rank leaves out.
    """

    better: Tensor
    tied: Tensor
    ignored_better: Tensor
    ignored_tied: Tensor

    @property
    def raw(self) -> Tensor:
        """Rank among all candidates: the mean of the best and the worst rank that ties allow."""
        return 1 + self.better + self.tied / 2

    @property
    def filtered(self) -> Tensor:
        """Rank among the candidates that are not ignored."""
        return self.raw - self.ignored_better - self.ignored_tied / 2


def answers_at_a_time(candidates: int) -> int:
    """How many answers are scored together. Whoever divides them at multiples of this gets the same bits."""
    return max(_QUERIES_AT_A_TIME, _SCORES_AT_A_TIME // max(1, candidates))


def count_ranks(
    query: Tensor,
    table: Tensor,
    owner: Tensor,
    column: Tensor,
    ignored: tuple[Tensor, Tensor],
    similarity: Similarity,
) -> RankCounts:
    """Counts for answers ``(owner, column)``: which query, and which row of the table.

    Args:
        query: ``[Q, d]`` query vectors.
        table: ``[n, d]`` candidates of all queries.
        owner: ``[P]`` the query of each answer, ascending.
        column: ``[P]`` the answer's place among the candidates.
        ignored: (answer, column) pairs a filtered rank leaves out, by ascending answer, each ``[M]``; an
            answer's own column does not count.
        similarity: How queries and candidates are compared.
    """
    answers = len(owner)
    better = torch.empty(answers, dtype=torch.long, device=query.device)
    tied, ignored_better, ignored_tied = torch.empty_like(better), torch.empty_like(better), torch.empty_like(better)
    at_a_time = answers_at_a_time(len(table))
    bounds = torch.arange(0, answers + at_a_time, at_a_time, device=query.device).clamp_(max=answers)
    ignored_bounds = torch.searchsorted(ignored[0], bounds).tolist()
    # Kept from product to product: fresh memory costs as much as filling it.
    buffer = query.new_empty(min(at_a_time, answers), len(table))
    for i, start in enumerate(range(0, answers, at_a_time)):
        end = min(start + at_a_time, answers)
        asked, row_of = torch.unique_consecutive(owner[start:end], return_inverse=True)
        scores = all_scores(query.index_select(0, asked), table, similarity, out=buffer[: len(asked)])
        if len(asked) < end - start:  # some query has several answers: a row of scores for each
            scores = scores.index_select(0, row_of)
        own = scores.gather(1, column[start:end, None])
        low, high = ignored_bounds[i], ignored_bounds[i + 1]
        answer, other = ignored[0][low:high] - start, ignored[1][low:high]
        theirs, mine = scores[answer, other], own[answer, 0]
        not_itself = other != column[start:end][answer]
        ignored_better[start:end] = _count(theirs > mine, answer, end - start)
        ignored_tied[start:end] = _count((theirs == mine) & not_itself, answer, end - start)
        better[start:end], level = better_and_level(scores, own)
        tied[start:end] = level - 1  # itself
    return RankCounts(better, tied, ignored_better, ignored_tied)


def better_and_level(scores: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """How many scores of each row are higher than its own and how many the same, ``[b, n] × [b, 1] → 2 × [b]``.

    From sums of signs, which cost a fifth of comparing twice; ``scores`` are used up.
    """
    # Sums of ones are exact in 32 bits for up to 16 million candidates. What has no difference, two infinities or a
    # score that is no number, has the sign 0: a tie.
    ahead, apart = torch.zeros_like(own[:, 0]), torch.zeros_like(own[:, 0])
    # A cache-full at a time: there are five walks.
    for part in scores.split(max(1, _SIGNS_AT_A_TIME // max(1, len(scores))), dim=1):
        signs = part.sub_(own).sign_()
        ahead += signs.sum(1)
        apart += signs.abs_().sum(1)
    return ((apart + ahead) / 2).long(), (scores.size(1) - apart).long()


def _count(hits: Tensor, group: Tensor, groups: int) -> Tensor:
    return scatter(hits.long(), group, dim=0, dim_size=groups, reduce="sum")
