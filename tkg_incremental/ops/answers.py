"""The true answers of every query, in compressed rows."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.ops.keys import expand_spans, lexsort, pack

Side = Literal["head", "tail"]
SIDES: tuple[Side, Side] = ("tail", "head")

HEAD, REL, TAIL, TIME = range(4)


def query_columns(side: Side) -> tuple[int, int]:
    """Which columns of a row are (given entity, asked entity) when ``side`` is asked for."""
    if side == "tail":
        return HEAD, TAIL
    if side == "head":
        return TAIL, HEAD
    raise ValueError(f"side must be 'head' or 'tail' (got {side!r})")


class AnswerIndex:
    r"""All answers :math:`\{o : (s, r, o, t) \in D\}` of all queries :math:`(s, r, ?, t)` of some rows.

    Answers are kept as *columns*: the position of an entity in the order of first appearance, which
    is also its column in every matrix of candidate scores. Within a query they ascend.

    Args:
        rows: ``[N, 4]`` head, rel, tail, time.
        side: The side that is asked for.
        column_of: ``[num_entities]`` entity → column.
        num_relations: Number of relations.
        num_steps: Number of steps.
    """

    def __init__(self, rows: Tensor, side: Side, column_of: Tensor, num_relations: int, num_steps: int) -> None:
        self.side = side
        self._sizes = (num_steps, len(column_of), num_relations)
        key = self._key(rows)
        columns = column_of[rows[:, query_columns(side)[1]]]
        order = lexsort(key, columns)
        key, columns = key[order], columns[order]
        fresh = torch.ones_like(key, dtype=torch.bool)
        fresh[1:] = (key[1:] != key[:-1]) | (columns[1:] != columns[:-1])
        key, self.columns = key[fresh], columns[fresh]
        self._keys, counts = torch.unique_consecutive(key, return_counts=True)
        # One empty query at the end stands for every query without an answer.
        self.counts = torch.cat([counts, counts.new_zeros(1)])
        self.start = torch.cumsum(self.counts, 0) - self.counts

    @property
    def times(self) -> Tensor:
        """The step of each query that has answers."""
        return self._keys // (self._sizes[1] * self._sizes[2])

    def lookup(self, rows: Tensor) -> Tensor:
        """The query of each row, ``[B]``: an index into :attr:`counts` and :attr:`start`."""
        missing = self._keys.numel()
        if missing == 0:
            return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
        key = self._key(rows)
        at = torch.searchsorted(self._keys, key).clamp_(max=missing - 1)
        return torch.where(self._keys[at] == key, at, missing)

    def has_answers(self, rows: Tensor) -> Tensor:
        """Whether the query of each row has any, ``[B]``."""
        return self.counts[self.lookup(rows)] > 0

    def expand(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """The answers of ``queries`` end to end: (index into ``queries``, column), each ``[M]``."""
        owner, place = expand_spans(self.start[queries], self.counts[queries])
        return owner, self.columns[place]

    def _key(self, rows: Tensor) -> Tensor:
        given = query_columns(self.side)[0]
        return pack([rows[:, TIME], rows[:, given], rows[:, REL]], self._sizes)

    def __repr__(self) -> str:
        return f"AnswerIndex({self._keys.numel()} {self.side} queries, {self.columns.numel()} answers)"
