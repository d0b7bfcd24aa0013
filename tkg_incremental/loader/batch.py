"""A batch: the quads of every term and the entities they are scored against. It holds every random choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tkg_incremental.loader.negatives import NegativeSampler


@dataclass(frozen=True)
class Candidates:
    """The entities that the two queries of each quad are scored against besides the true answer.

    Args:
        entities: ``[L, K]`` lists of entity ids.
        time: ``[L]`` the step of each list.
        list_of_query: ``[2B]`` the list of each query, tail queries first; :obj:`None` if ``L = 2B`` and every query
            has its own list.
        mask: ``[2B, K]`` or ``[2B, 1]``, :obj:`True` where a candidate must not count, because it is a true answer or
            because there was none to draw; :obj:`None` if all count.
        from_pool: Whether all candidates are members of the batch's candidate pool.
        for_batch: Whether there is one list of distinct entities, by first appearance, for all quads of the batch;
            true answers and entities that are not known yet are left out when it is scored.
    """

    entities: Tensor
    time: Tensor
    list_of_query: Tensor | None = None
    mask: Tensor | None = None
    from_pool: bool = True
    for_batch: bool = False

    def part(self, begin: int, end: int, total: int) -> Candidates:
        """The candidates of the quads ``begin … end - 1`` of ``total``."""

        def cut(values: Tensor) -> Tensor:
            return torch.cat([values[begin:end], values[total + begin : total + end]])

        if self.for_batch:
            return self
        mask = None if self.mask is None else cut(self.mask)
        if self.list_of_query is None:
            return Candidates(cut(self.entities), cut(self.time), None, mask, self.from_pool)
        return Candidates(self.entities, self.time, cut(self.list_of_query), mask, self.from_pool)


@dataclass(frozen=True)
class TermBatch:
    """What one term of the loss gets of a batch.

    Args:
        quads: ``[B, 4]`` by ascending time, never empty.
        candidates: What the quads are scored against; :obj:`None` for terms that draw nothing.
        weight: Weight of the term's losses: the share of the quads in a batch that several processes divide, times
            the number of processes.
        total: Number of quads before the batch was divided; :obj:`None` for the number of ``quads``.
    """

    quads: Tensor
    candidates: Candidates | None = None
    weight: float = 1.0
    total: int | None = None

    def part(self, rank: int, size: int) -> TermBatch:
        """The part of one of several processes. The mean over the processes is the mean over the batch."""
        total = len(self.quads)
        # All processes must take part in every exchange, so none may be left without quads.
        if size == 1 or total < size:
            return self
        begin, end = total * rank // size, total * (rank + 1) // size
        candidates = None if self.candidates is None else self.candidates.part(begin, end, total)
        return TermBatch(self.quads[begin:end], candidates, (end - begin) * size / total, total)


@dataclass(frozen=True)
class TKGBatch:
    """One batch of training.

    Args:
        terms: One entry per term of the strategy; :obj:`None` for a term without quads in this batch.
        sampler: Drew the candidates.
    """

    terms: Sequence[TermBatch | None]
    sampler: NegativeSampler

    def part(self, rank: int, size: int) -> TKGBatch:
        """The part of one of several processes, cut after everything was drawn."""
        return TKGBatch([None if term is None else term.part(rank, size) for term in self.terms], self.sampler)

    def __iter__(self) -> Iterator[TermBatch]:
        """The terms that have quads."""
        return (term for term in self.terms if term is not None)

    def __len__(self) -> int:
        """Number of quads."""
        return sum(len(term.quads) for term in self)

    def __repr__(self) -> str:
        sizes = ", ".join("–" if term is None else str(len(term.quads)) for term in self.terms)
        return f"TKGBatch([{sizes}] quads, {self.sampler!r})"
