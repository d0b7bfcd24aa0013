"""Ranks by counting what is better: no sort, no mask, and additive over shards of the candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.keys import expand_spans
from tkg_incremental.ops.scores import Similarity, all_scores

# Scores held at a time: large enough for an efficient product, small enough to stay in the cache while counted.
_SCORES_AT_A_TIME = 1 << 21
_SIGNS_AT_A_TIME = 1 << 20
# A table with more rows than this is scored a block at a time: few queries would read it for too little work.
_WIDE = 1 << 16
_BLOCK = 1 << 10
_ANSWERS_TO_A_BLOCK = 512
# Chunks of answers that are sorted together, so that those of a chunk stand in few blocks of a wide table.
_SORTED_CHUNKS = 8


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


class Blocking:
    """How answers are scored against candidates: a chunk of answers and a block of candidates at a time.

    Args:
        candidates: How many candidates there are.
    """

    def __init__(self, candidates: int) -> None:
        self._is_wide = candidates > _WIDE
        self.width = _BLOCK if self._is_wide else max(1, candidates)
        self._at_a_time = _ANSWERS_TO_A_BLOCK if self._is_wide else max(1, _SCORES_AT_A_TIME // self.width)
        #: Answers that are divided at multiples of this give the same bits.
        self.together = self._at_a_time * _SORTED_CHUNKS if self._is_wide else self._at_a_time

    def chunks(self, column: Tensor) -> Iterator[Tensor]:
        """The answers to score at a time, as places in ``column`` ``[P]``, which has their places among candidates."""
        for together in torch.arange(len(column), device=column.device).split(self.together):
            if self._is_wide:
                together = together[torch.argsort(column[together], stable=True)]
            yield from together.split(self._at_a_time)

    def room(self, like: Tensor, answers: int) -> Tensor:
        """Room for the scores of a chunk and a block: fresh memory for each would cost as much as filling it."""
        return like.new_empty(min(self._at_a_time, answers) * self.width)


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
    counts = torch.empty(len(owner), 4, dtype=torch.long, device=query.device)
    blocking = Blocking(len(table))
    room = blocking.room(query, len(owner))
    for some in blocking.chunks(column):
        scores = BlockScores(query, owner[some], table, similarity, blocking.width, room)
        own = scores.at(column[some])
        counts[some] = scores.count(own, column[some], pairs_of(ignored, some))
    return RankCounts(*counts.unbind(1))


def pairs_of(pairs: tuple[Tensor, Tensor], answers: Tensor) -> tuple[Tensor, Tensor]:
    """Those (answer, column) pairs, by ascending answer, whose answer is one of ``answers``, numbered by these."""
    low, high = (torch.searchsorted(pairs[0], answers, right=right) for right in (False, True))
    which, place = expand_spans(low, high - low)
    return which, pairs[1][place]


class BlockScores:
    """The scores of a few answers' queries against a table, a block of columns at a time.

    The last block stays: a score and what it is compared with come from the same product, or from one of the same
    shape, so that equal vectors tie.

    Args:
        query: ``[Q, d]`` query vectors.
        owner: ``[b]`` the query of each answer.
        table: ``[n, d]`` candidates.
        similarity: How queries and candidates are compared.
        width: Columns of a block.
        room: Where their scores are written.
    """

    def __init__(
        self, query: Tensor, owner: Tensor, table: Tensor, similarity: Similarity, width: int, room: Tensor
    ) -> None:
        asked, self._row_of = torch.unique_consecutive(owner, return_inverse=True)
        self._query, self._table, self._similarity = query.index_select(0, asked), table, similarity
        self._width, self._room = width, room
        self._scores, self._skip, self._start = room, 0, -1

    def at(self, column: Tensor) -> Tensor:
        """The score of each answer, ``[b] → [b]``; 0 where its column is -1."""
        own = self._room.new_zeros(len(column))
        block = column.div(self._width, rounding_mode="floor")
        there = [0] if len(self._table) <= self._width else torch.unique(block[column >= 0]).tolist()
        for number in there if len(self._table) else []:
            start = number * self._width
            self._score(start)
            inside = (column - start).clamp(0, self._scores.size(1) - self._skip - 1)
            own = torch.where(block == number, self._scores[self._row_of, inside + self._skip], own)
        return own

    def count(self, own: Tensor, column: Tensor, ignored: tuple[Tensor, Tensor]) -> Tensor:
        """Candidates that are better, tied, and those of them that are ignored, ``[b, 4]``.

        Args:
            own: ``[b]`` the scores of the answers.
            column: ``[b]`` their places, or -1 for an answer that is not in the table.
            ignored: (answer, column) pairs.
        """
        higher, lower, better, tied = own.new_zeros(4, len(own), dtype=torch.long)
        starts = range(0, len(self._table), self._width)
        for start, (answer, other) in zip(starts, self._by_block(ignored, len(starts)), strict=True):
            self._score(start)
            if len(answer):
                theirs, mine = self._scores[self._row_of[answer], other - start + self._skip], own[answer]
                better += _count(theirs > mine, answer, len(own))
                tied += _count((theirs == mine) & (other != column[answer]), answer, len(own))
            self._count_block(own, higher, lower)
            self._start = -1  # used up
        itself = (column >= 0).long()
        return torch.stack([higher, len(self._table) - higher - lower - itself, better, tied], dim=1)

    def _by_block(self, pairs: tuple[Tensor, Tensor], blocks: int) -> Iterable[tuple[Tensor, Tensor]]:
        if blocks == 1:
            return [pairs]
        block = pairs[1] // self._width
        order = torch.argsort(block, stable=True)
        sizes = torch.bincount(block, minlength=blocks).tolist()
        return zip(pairs[0][order].split(sizes), pairs[1][order].split(sizes), strict=True)

    def _score(self, start: int) -> None:
        """Writes the scores of the block that begins at ``start``, ``[Q, n]``; leading columns of an earlier block are
        to be skipped."""
        if start != self._start:
            # The last block begins earlier than it must: another width could mean another kernel, and other last bits.
            begin = max(0, min(start, len(self._table) - self._width))
            part = self._table[begin : begin + self._width]
            out = self._room[: len(self._query) * len(part)].view(len(self._query), len(part))
            self._scores = all_scores(self._query, part, self._similarity, out=out)
            self._skip, self._start = start - begin, start

    def _count_block(self, own: Tensor, higher: Tensor, lower: Tensor) -> None:
        """Adds to ``higher`` and ``lower`` ``[b]`` how many scores of the block are so, compared with each answer's
        ``own``. The scores are used up."""
        width = self._scores.size(1)
        if native.takes(self._scores, own):
            sizes = width, self._skip, width - self._skip
            native.call("count_scores", self._scores, *sizes, self._row_of, own, len(own), higher, lower)
            return
        scores = self._scores[:, self._skip :]
        if len(scores) < len(own):  # some query has several answers: a row of scores for each
            scores = scores.index_select(0, self._row_of)
        _sum_signs(scores, own[:, None], higher, lower)


def _sum_signs(scores: Tensor, own: Tensor, higher: Tensor, lower: Tensor) -> None:
    # Sums of signs cost a fifth of comparing twice. They are exact in 32 bits for up to 16 million candidates. What has
    # no difference, two infinities or a score that is no number, has the sign 0: a tie.
    ahead, apart = own.new_zeros(2, len(own))
    # A cache-full at a time: there are five walks.
    for part in scores.split(max(1, _SIGNS_AT_A_TIME // max(1, len(scores))), dim=1):
        signs = part.sub_(own).sign_()
        ahead += signs.sum(1)
        apart += signs.abs_().sum(1)
    higher += ((apart + ahead) / 2).long()
    lower += ((apart - ahead) / 2).long()


def _count(hits: Tensor, group: Tensor, groups: int) -> Tensor:
    counts = torch.zeros(groups, *hits.shape[1:], dtype=torch.long, device=hits.device)
    return counts.index_add_(0, group, hits.long())
