"""Time-dependent negatives: entities known at the row's step that are no true answer there."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.ops import native
from tkg_incremental.ops.answers import TIME, AnswerIndex, Side, query_columns
from tkg_incremental.ops.keys import contains, segment_arange
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
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
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
            Columns ``[B, 1 + count]`` of the row's own answer and of its negatives, in ``out`` if that is given, and
            ``[B]`` whether a row has negatives: where every known entity is a true answer there is none, and its
            columns mean nothing. :obj:`None` if there is no such query.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1 (got {count})")
        answers = self.timeline.answers(side, "train")
        query_of_row, known = answers.lookup(rows), self.timeline.num_known[rows[:, TIME]]
        numbers = share.by_row(
            len(rows),
            lambda n: torch.empty(n, count, dtype=torch.long, device=rows.device).random_(generator=generator),
        ).contiguous()
        taken = answers.counts[query_of_row]
        there = known > taken if self._may_have_none(side) else None
        out = numbers.new_empty(len(rows), 1 + count) if out is None else out
        out[:, 0] = self.timeline.column_of[rows[:, query_columns(side)[1]]]
        if native.takes(numbers):
            start = answers.start[query_of_row]
            native.call("choose_negatives", numbers, known, answers.columns, start, taken, out, *numbers.shape)
        else:
            out[:, 1:] = _choose(numbers, known, answers, query_of_row, self.timeline.num_entities)
        return out, there

    def _may_have_none(self, side: Side) -> bool:
        """Whether any query has all known entities for answers."""
        if side not in self._some_have_none:
            answers, known = self.timeline.answers(side, "train"), self.timeline.num_known
            full = answers.counts[:-1] >= known[answers.times]
            self._some_have_none[side] = bool(full.any()) or bool((known == 0).any())
        return self._some_have_none[side]

    def __repr__(self) -> str:
        return f"NegativeSampler({self.timeline!r})"


def _choose(numbers: Tensor, known: Tensor, answers: AnswerIndex, query_of_row: Tensor, num_entities: int) -> Tensor:
    """Columns ``[B, K]`` from random numbers ``[B, K]``, for rows with so many known entities and these queries."""
    free = known - answers.counts[query_of_row]
    # Rows that share a query share its answers: one sorted list for the distinct queries of the batch.
    queries, query_of_row = torch.unique(query_of_row, return_inverse=True)
    owner, taken = answers.expand(queries)
    counts, known = answers.counts[queries], known.clamp(min=1)
    columns = numbers % known[:, None]
    stride = num_entities + 1
    keys = owner * stride + taken
    row, place = _true_answers(keys, query_of_row * stride, columns)
    query = query_of_row[row]
    number = numbers[row, place] // known[row] % free[row].clamp(min=1)
    below = torch.searchsorted(keys - segment_arange(counts), number + query * stride, right=True)
    columns[row, place] = number + below - (counts.cumsum(0) - counts)[query]
    return columns


def _true_answers(keys: Tensor, base: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Where (row, place) ``base[row] + columns[row, place]`` is among the ascending ``keys``."""
    # A look into a small table of marks rules out nearly all of them, at a tenth of the cost of a search.
    marks = torch.zeros(_MARKS, dtype=torch.bool, device=keys.device)
    marks[keys & (_MARKS - 1)] = True
    marked = (columns + base[:, None]).bitwise_and_(_MARKS - 1).flatten()
    row, place = marks.index_select(0, marked).view_as(columns).nonzero(as_tuple=True)
    found = contains(keys, base[row] + columns[row, place]).nonzero().squeeze(1)
    return row[found], place[found]
