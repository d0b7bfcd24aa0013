"""The true answers of every query at every step, from facts with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.ops.keys import expand_spans, lexsort, pack

Side = Literal["head", "tail"]
SIDES: tuple[Side, Side] = ("tail", "head")

HEAD, REL, TAIL, TIME = range(4)
FIRST, LAST = 3, 4

# Entries that are compared with a query's time at once.
_ENTRIES_AT_ONCE = 1 << 22


def query_columns(side: Side) -> tuple[int, int]:
    """Which columns of a quad are (given entity, asked entity) when ``side`` is asked for."""
    if side == "tail":
        return HEAD, TAIL
    if side == "head":
        return TAIL, HEAD
    raise ValueError(f"side must be 'head' or 'tail' (got {side!r})")


class AnswerIndex:
    r"""The answers :math:`\{o : (s, r, o, t) \in D\}` of all queries :math:`(s, r, ?, t)`.

    There is one entry for each fact, sorted by given entity, relation, answer and first step. An entry answers the
    queries at the steps from :attr:`first` to :attr:`last`.

    Args:
        facts: ``[F, 5]`` head, rel, tail, first, last. Facts of the same triple must not overlap.
        side: The side that is asked for.
        num_entities: Number of entities.
        num_relations: Number of relations.
    """

    def __init__(self, facts: Tensor, side: Side, num_entities: int, num_relations: int) -> None:
        self.side, self.num_entities, self.num_relations = side, num_entities, num_relations
        given, answer = (facts[:, column] for column in query_columns(side))
        key = pack([given, facts[:, REL], answer], [num_entities, num_relations, num_entities])
        order = lexsort(key, facts[:, FIRST])
        #: ``[F]`` :meth:`query_key` × number of entities + answer, in the order of the index.
        self.key = key[order]
        #: ``[F]`` answers in the order of the index.
        self.entity = answer[order]
        #: ``[F]`` first step of each entry.
        self.first = facts[order, FIRST]
        #: ``[F]`` last step of each entry.
        self.last = facts[order, LAST]
        self._last_begin = int(self.first.max()) if len(facts) else 0

    def spans(self, quads: Tensor) -> tuple[Tensor, Tensor]:
        """The entries of each quad's (given, rel) over all time: (start, count), each ``[B]``."""
        low = self.query_key(quads) * self.num_entities
        start = torch.searchsorted(self.key, low)
        return start, torch.searchsorted(self.key, low + self.num_entities) - start

    def expand(self, quads: Tensor) -> tuple[Tensor, Tensor]:
        """The true answers at each quad's time: (row in ``quads``, entity), each ``[M]``, by row, then entity."""
        start, count = self.spans(quads)
        time = quads[:, TIME]
        rows, entities = [], []
        for low, high in _chunks(count):
            row, entry = expand_spans(start[low:high], count[low:high])
            row = row + low
            asked = time[row]
            # An integer index from a mask costs less than two masked copies.
            true = ((self.first[entry] <= asked) & (asked <= self.last[entry])).nonzero().squeeze(1)
            rows.append(row[true])
            entities.append(self.entity[entry[true]])
        if len(rows) == 1:
            return rows[0], entities[0]
        none = torch.empty(0, dtype=torch.long, device=quads.device)
        return torch.cat([none, *rows]), torch.cat([none, *entities])

    def contains(self, quads: Tensor, candidates: Tensor) -> Tensor:
        """Whether each candidate answers the quad of its row, ``[B, 4] × [B, K] → [B, K]``.

        Args:
            quads: ``[B, 4]`` head, rel, tail, time.
            candidates: ``[B, K]`` entities.
        """
        if len(self) == 0:
            return torch.zeros_like(candidates, dtype=torch.bool)
        key = self.query_key(quads)[:, None] * self.num_entities + candidates
        time = quads[:, TIME, None].expand_as(key)
        # The entry of the triple that began last, at the quad's time.
        entry = torch.searchsorted(self._begin_key, self._with_time(key, time), right=True) - 1
        entry.clamp_(min=0)
        return (self.key[entry] == key) & (self.first[entry] <= time) & (time <= self.last[entry])

    def counts(self, quads: Tensor) -> Tensor:
        """Number of true answers of each quad's query, ``[B]``."""
        return torch.bincount(self.expand(quads)[0], minlength=len(quads))

    def has_answers(self, quads: Tensor) -> Tensor:
        """Whether the query of each quad has a true answer, ``[B]``."""
        return self.counts(quads) > 0

    def to(self, device: torch.device | str) -> AnswerIndex:
        """A copy on another device (itself if it is there already)."""
        if torch.device(device) == self.key.device:
            return self
        twin = object.__new__(AnswerIndex)
        moved = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in vars(self).items()}
        vars(twin).update(moved)
        return twin

    def query_key(self, quads: Tensor) -> Tensor:
        """The query of each quad, its given entity and relation, as one number, ``[B, 4] → [B]``."""
        return quads[:, query_columns(self.side)[0]] * self.num_relations + quads[:, REL]

    @cached_property
    def _begin_key(self) -> Tensor:
        return self._with_time(self.key, self.first)

    def _with_time(self, key: Tensor, time: Tensor) -> Tensor:
        """(given, rel, answer, time) as one number."""
        steps = self._last_begin + 1
        if self.num_entities**2 * self.num_relations * steps >= 2**63:
            # Numbered by rank instead. A triple without an entry gets the rank of the next one and is sorted out later.
            key = torch.searchsorted(self.key, key)
        return key * steps + time.clamp(max=self._last_begin)

    def __len__(self) -> int:
        return len(self.key)

    def __repr__(self) -> str:
        return f"AnswerIndex({self.side}, {len(self)} entries)"


def _chunks(count: Tensor) -> Iterator[tuple[int, int]]:
    """Ranges of spans with about ``_ENTRIES_AT_ONCE`` entries each."""
    ends = torch.cumsum(count, 0)
    total = int(ends[-1]) if len(count) else 0
    if total <= _ENTRIES_AT_ONCE:
        yield 0, len(count)
        return
    marks = torch.arange(_ENTRIES_AT_ONCE, total + _ENTRIES_AT_ONCE, _ENTRIES_AT_ONCE, device=count.device)
    low = 0
    for high in torch.searchsorted(ends, marks, right=True).tolist():
        high = min(max(high, low + 1), len(count))
        if high > low:
            yield low, high
        low = high
