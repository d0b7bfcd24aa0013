"""Ranks by counting what is better: no sort, no mask, and additive over shards of the candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.keys import find_all
from tkg_incremental.ops.scores import Similarity, all_scores, compare

if TYPE_CHECKING:
    from tkg_incremental.communicator import Communicator

# Scores held at a time: large enough for an efficient product, small enough to stay in the cache while counted.
_SCORES_AT_A_TIME = 1 << 21
_SIGNS_AT_A_TIME = 1 << 20
# A table with more rows than this is scored a block at a time: few queries would read it for too little work.
_WIDE = 1 << 16
_BLOCK = 1 << 10
_ANSWERS_TO_A_BLOCK = 512
# Chunks of answers that are sorted together, so that those of a chunk stand in few blocks of a wide table.
_SORTED_CHUNKS = 8
# Number of first candidates that may show that an answer ranks low. Scores of two products may differ by rounding: what
# is higher must be so by this share of the largest score.
_SCREEN, _ROUNDING = 1 << 10, 1e-4


@dataclass
class RankedAnswers:
    """Answers to rank: which query, and which candidate.

    Args:
        query: ``[Q, d]`` query vectors.
        owner: ``[P]`` the query of each answer, ascending.
        column: ``[P]`` the answer's position among the candidates.
        ignored: (answer, column) pairs that a filtered rank leaves out, by ascending answer, each ``[M]``; an answer's
            own column does not count.
    """

    query: Tensor
    owner: Tensor
    column: Tensor
    ignored: tuple[Tensor, Tensor]

    def __len__(self) -> int:
        return len(self.owner)

    def part(self, start: int, end: int) -> RankedAnswers:
        """The answers ``start … end - 1``."""
        low, high = torch.searchsorted(self.ignored[0], torch.tensor([start, end], device=self.owner.device)).tolist()
        ignored = (self.ignored[0][low:high] - start, self.ignored[1][low:high])
        return RankedAnswers(self.query, self.owner[start:end], self.column[start:end], ignored)

    def select(self, index: Tensor) -> RankedAnswers:
        """Some of the answers, by ascending ``index``."""
        return RankedAnswers(self.query, self.owner[index], self.column[index], pairs_of(self.ignored, index))


def block_sizes(candidates: int) -> tuple[int, int, int]:
    """How answers are scored: the number of candidates and the number of answers of one product, and the number of
    answers that are sorted together. Answers that are divided at multiples of the last give the same bits."""
    if candidates > _WIDE:
        return _BLOCK, _ANSWERS_TO_A_BLOCK, _ANSWERS_TO_A_BLOCK * _SORTED_CHUNKS
    width = max(1, candidates)
    at_a_time = max(1, _SCORES_AT_A_TIME // width)
    return width, at_a_time, at_a_time


def chunks_of(column: Tensor, candidates: int) -> Iterator[Tensor]:
    """The answers to score at a time, as places in ``column`` ``[P]``, which has their places among candidates."""
    _, at_a_time, sorted_together = block_sizes(candidates)
    for together in torch.arange(len(column), device=column.device).split(sorted_together):
        if candidates > _WIDE:
            together = together[torch.argsort(column[together], stable=True)]
        yield from together.split(at_a_time)


def count_ranks(answers: RankedAnswers, table: Tensor, similarity: Similarity) -> Tensor:
    """Counts for each answer, ``[P, 4]``: candidates with a higher score, other candidates with the same score, and
    those of both that a filtered rank leaves out. :func:`ranks_of` makes ranks of them.

    Args:
        answers: The answers.
        table: ``[n, d]`` candidates of all queries.
        similarity: How queries and candidates are compared.
    """
    counts = torch.empty(len(answers), 4, dtype=torch.long, device=table.device)
    width, at_a_time, _ = block_sizes(len(table))
    # Fresh memory for each chunk would cost as much as filling it.
    room = table.new_empty(min(at_a_time, len(answers)) * width)
    for some in chunks_of(answers.column, len(table)):
        scores = BlockScores(answers.query, answers.owner[some], table, similarity, width, room)
        column = answers.column[some]
        counts[some] = scores.count(scores.at(column), column, pairs_of(answers.ignored, some))
    return counts


def count_in_parts(
    sets: Sequence[RankedAnswers],
    table: Tensor,
    similarity: Similarity,
    communicator: Communicator,
    limit: int | None = None,
) -> list[Tensor]:
    """:func:`count_ranks` of several sets of answers, on all processes, each of which counts some of the answers.

    Products of other sizes may differ in their last bits, so the work is divided between the products that one process
    would compute, never within one: the counts have the same bits for any number of processes.

    Args:
        sets: The answers, the same on all processes.
        table: ``[n, d]`` candidates of all queries.
        similarity: How queries and candidates are compared.
        communicator: Connects the processes that share the work.
        limit: Answers whose filtered rank is above this may have any other rank above it.
    """
    if limit is not None and len(table) >= 4 * _SCREEN:
        places = [_may_be_among(answers, table, similarity, limit) for answers in sets]
        some = [answers.select(place) for answers, place in zip(sets, places, strict=True)]
        counts = [torch.zeros(len(answers), 4, dtype=torch.long, device=table.device) for answers in sets]
        counted = count_in_parts(some, table, similarity, communicator)
        for rows, place, those in zip(counts, places, counted, strict=True):
            rows[:, 0] = limit
            rows[place] = those
        return counts
    rank, size = communicator.rank, communicator.size
    if size == 1:
        return [count_ranks(answers, table, similarity) for answers in sets]
    together = block_sizes(len(table))[2]
    parts = [(answers, start) for answers in sets for start in range(0, len(answers), together)]
    mine = parts[len(parts) * rank // size : len(parts) * (rank + 1) // size]
    counted = [count_ranks(answers.part(start, start + together), table, similarity) for answers, start in mine]
    nothing = torch.empty(0, 4, dtype=torch.long, device=table.device)
    everything = torch.cat(communicator.gather(torch.cat([nothing, *counted])))
    return list(everything.split([len(answers) for answers in sets]))


def _may_be_among(answers: RankedAnswers, table: Tensor, similarity: Similarity, limit: int) -> Tensor:
    """The answers, ascending, whose filtered rank among the first candidates alone is not above ``limit``."""
    ignored = torch.bincount(answers.ignored[0], minlength=len(answers))
    found = [answers.owner[:0]]
    for some in torch.arange(len(answers), device=table.device).split(_SCREEN):
        query = answers.query[answers.owner[some]]
        own = compare(query, table[answers.column[some]], similarity)
        scores = all_scores(query, table[:_SCREEN], similarity)
        higher = scores > (own + _ROUNDING * scores.abs().amax(1))[:, None]
        found.append(some[higher.sum(1) - ignored[some] < limit])
    return torch.cat(found)


def ranks_of(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Filtered and raw ranks, ``[P, 4] → 2 × [P]``: the mean of the best and the worst rank that ties allow, among the
    candidates that are not ignored and among all."""
    better, tied, ignored_better, ignored_tied = counts.unbind(1)
    raw = 1 + better + tied / 2
    return raw - ignored_better - ignored_tied / 2, raw


def pairs_of(pairs: tuple[Tensor, Tensor], answers: Tensor) -> tuple[Tensor, Tensor]:
    """Those (answer, column) pairs, by ascending answer, whose answer is one of ``answers``, numbered by these."""
    which, place = find_all(pairs[0], answers)
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
