"""Time-dependent negatives: entities known at the row's step that are no true answer there."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.ops import native
from tkg_incremental.ops.answers import TIME, Side
from tkg_incremental.ops.keys import contains, expand_spans, segment_arange
from tkg_incremental.sampling.pool import Pool
from tkg_incremental.sampling.share import WHOLE, Share

_MARKS = 1 << 20  # a power of two, and small enough for the cache


class NegativeSampler:
    r"""Draws from :math:`D^-_{s,r,t'} = \{o' \in E^{t'}_{known} : (s, r, o', t') \notin D^{t'}\}`, uniformly and
    with replacement, for each row on its own.

    A random number gives a column among the known entities. The few columns that are true answers are replaced by
    counting: with the answers at the ascending columns :math:`a_0 < a_1 < \dots`, the other columns are numbered, the
    rest of the random number is one of these numbers, :math:`u`, and the column is :math:`u` plus the count of
    :math:`a_i - i \le u`. No number is drawn twice, so what is drawn for one row does not depend on the others.

    Args:
        timeline: The graph; its train rows are what is true.
        pool: Whom to draw from; from everybody by default.
    """

    def __init__(self, timeline: Timeline, pool: Pool | None = None) -> None:
        self.timeline, self.pool = timeline, pool or Pool(timeline)
        self._some_have_none: dict[Side, bool] = {}

    def __call__(
        self,
        rows: Tensor,
        side: Side,
        count: int,
        generator: torch.Generator | None = None,
        share: Share = WHOLE,
        out: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Draws ``count`` negatives for each row; ``share`` says of which batch the rows are a part.

        Returns:
            Columns ``[B, count]`` in the order of the pool, in ``out`` if that is given, and ``[B]`` whether a row has
            negatives: where everybody in the pool is a true answer there is none, and its columns mean nothing.
            :obj:`None` if there is no such query.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1 (got {count})")
        true, known = self._true_answers(rows, side), self.pool.num_known[rows[:, TIME]]
        numbers = share.by_row(
            len(rows),
            lambda n: torch.empty(n, count, dtype=torch.long, device=rows.device).random_(generator=generator),
        ).contiguous()
        taken = true.counts[true.query_of_row]
        there = known > taken if self._may_have_none(side) else None
        out = torch.empty_like(numbers) if out is None else out
        if native.takes(numbers):
            start = true.start[true.query_of_row]
            native.call("choose_negatives", numbers, known, true.columns, start, taken, out, *numbers.shape)
        else:
            out.copy_(_choose(numbers, known, true, len(self.pool.order)))
        return out, there

    def _true_answers(self, rows: Tensor, side: Side) -> _TrueAnswers:
        answers = self.timeline.answers(side, "train")
        query_of_row = answers.lookup(rows)
        if self.pool.is_everybody:
            return _TrueAnswers(answers.columns, answers.start, answers.counts, query_of_row)
        queries, query_of_row = torch.unique(query_of_row, return_inverse=True)
        owner, columns = answers.expand(queries)
        inside, columns = self.pool.among(columns)
        counts = torch.bincount(owner[inside], minlength=len(queries))
        return _TrueAnswers(columns, counts.cumsum(0) - counts, counts, query_of_row)

    def _may_have_none(self, side: Side) -> bool:
        """Whether any query may have everybody for answers."""
        if side not in self._some_have_none:
            answers, known = self.timeline.answers(side, "train"), self.pool.num_known
            full = answers.counts[:-1] >= known[answers.times]
            self._some_have_none[side] = bool(full.any()) or bool((known == 0).any())
        return self._some_have_none[side]

    def __repr__(self) -> str:
        return f"NegativeSampler({self.timeline!r}, {self.pool!r})"


class _TrueAnswers(NamedTuple):
    """The columns of queries' true answers, ascending for each, end to end; where those of a query start and how many
    they are; and the query of each row."""

    columns: Tensor
    start: Tensor
    counts: Tensor
    query_of_row: Tensor


def _choose(numbers: Tensor, known: Tensor, true: _TrueAnswers, width: int) -> Tensor:
    """Columns ``[B, K]`` below ``width`` from random numbers ``[B, K]``, for rows with so many known entities."""
    free = known - true.counts[true.query_of_row]
    # Rows that share a query share its answers: one sorted list for the distinct queries of the batch.
    queries, query_of_row = torch.unique(true.query_of_row, return_inverse=True)
    counts, known = true.counts[queries], known.clamp(min=1)
    owner, place = expand_spans(true.start[queries], counts)
    columns = numbers % known[:, None]
    stride = width + 1
    keys = owner * stride + true.columns[place]
    row, place = _find(keys, query_of_row * stride, columns)
    query = query_of_row[row]
    number = numbers[row, place] // known[row] % free[row].clamp(min=1)
    below = torch.searchsorted(keys - segment_arange(counts), number + query * stride, right=True)
    columns[row, place] = number + below - (counts.cumsum(0) - counts)[query]
    return columns


def _find(keys: Tensor, base: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Where (row, place) ``base[row] + columns[row, place]`` is among the ascending ``keys``."""
    # A look into a small table of marks rules out nearly all of them, at a tenth of the cost of a search.
    marks = torch.zeros(_MARKS, dtype=torch.bool, device=keys.device)
    marks[keys & (_MARKS - 1)] = True
    marked = (columns + base[:, None]).bitwise_and_(_MARKS - 1).flatten()
    row, place = marks.index_select(0, marked).view_as(columns).nonzero(as_tuple=True)
    found = contains(keys, base[row] + columns[row, place]).nonzero().squeeze(1)
    return row[found], place[found]
