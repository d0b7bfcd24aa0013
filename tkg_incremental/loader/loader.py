"""The loader: batches of a step's quads with everything random already drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.data import LazyQuads, Timeline
from tkg_incremental.loader.batch import TermBatch, TKGBatch
from tkg_incremental.loader.negatives import NegativeSampler
from tkg_incremental.ops.answers import TIME

if TYPE_CHECKING:
    from tkg_incremental.strategies.terms import Term

#: The quads of a term: written out, or virtual.
Quads = Tensor | LazyQuads


class TKGLoader:
    """Yields the batches of one epoch each time it is iterated over.

    Quads are drawn uniformly over the epoch, then sorted by time inside a batch, so that kernels find neighbours in the
    cache. Every term gets its share of each batch. With ``together``, groups of that many quads
    of one step are drawn instead: where the vectors of entities depend on time, those of a few steps cost little.

    Args:
        timeline: The graph.
        time: The step to learn.
        terms: The terms of the loss. Their views choose the quads when the loader is made.
        sampler: Draws negatives.
        generator: Source of all randomness.
        batch_size: Maximum number of quads per batch, over all terms together.
        short_last: Fill every batch but the last, as the released TIE code does, instead of batches of equal size.
        together: Number of quads of one step that are put into a batch together.
    """

    def __init__(
        self,
        timeline: Timeline,
        time: int,
        terms: Sequence[Term],
        sampler: NegativeSampler,
        generator: torch.Generator,
        batch_size: int = 2048,
        short_last: bool = False,
        together: int = 1,
    ) -> None:
        self.timeline, self.time, self.terms, self.sampler = timeline, time, terms, sampler
        self.generator, self.batch_size, self.short_last, self.together = generator, batch_size, short_last, together
        self.views: list[Quads | None] = [
            None if term.view is None else term.view.select(timeline, time, generator) for term in terms
        ]

    @property
    def num_quads(self) -> int:
        """Number of quads per epoch."""
        return sum(len(quads) for quads in self.views if quads is not None)

    @property
    def num_examples(self) -> int:
        """Number of labelled facts per epoch, negatives included: the paper's data size."""
        known = int(self.timeline.num_known[self.time])
        pairs = zip(self.terms, self.views, strict=True)
        return sum(term.num_examples(len(quads), known) for term, quads in pairs if quads is not None)

    def __len__(self) -> int:
        """Number of batches per epoch."""
        return math.ceil(self.num_quads / self.batch_size)

    def __iter__(self) -> Iterator[TKGBatch]:
        parts = [None if quads is None else self._shuffle(quads, sizes) for quads, sizes in self._sizes()]
        for batch in range(len(self)):
            terms = [
                None if part is None else self._draw(term, *part[batch])
                for term, part in zip(self.terms, parts, strict=True)
            ]
            yield TKGBatch(terms, self.sampler)

    def _sizes(self) -> Iterator[tuple[Quads | None, list[int]]]:
        """The quads of each term and how many of them each batch gets."""
        batches, dealt = len(self), 0
        filled = self._filled_sizes() if self.short_last else []
        for number, quads in enumerate(self.views):
            if quads is None:
                yield None, []
            elif self.short_last:
                yield quads, filled[number]
            else:
                # Round robin: a term begins with the batch after the one that the term before ended with.
                yield quads, [len(range((batch - dealt) % batches, len(quads), batches)) for batch in range(batches)]
                dealt += len(quads)

    def _filled_sizes(self) -> list[list[int]]:
        """For each term, its number of quads in each batch if every batch but the last is full."""
        counts = [0 if quads is None else len(quads) for quads in self.views]
        if max(counts, default=0) == self.num_quads:  # at most one term has quads
            cuts = [*range(0, self.num_quads, self.batch_size), self.num_quads]
            sizes = [b - a for a, b in pairwise(cuts)]
            return [sizes if count else [0] * len(self) for count in counts]
        # The quads of each term are spread evenly over the epoch, then the epoch is cut.
        places = torch.cat([(torch.arange(count, dtype=torch.double) + 0.5) / max(1, count) for count in counts])
        term = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))[torch.argsort(places, stable=True)]
        parts = [torch.bincount(part, minlength=len(counts)) for part in term.split(self.batch_size)]
        return torch.stack(parts, 1).tolist()

    def _shuffle(self, quads: Quads, sizes: list[int]) -> list[tuple[Quads, Tensor]]:
        """The quads of each batch: where to take them from, and which."""
        order = torch.randperm(len(quads), generator=self.generator, device=quads.device)
        if self.together > 1:
            quads = self._take(quads, order)
            order = self._shuffle_groups(quads[:, TIME])
        return [(quads, index) for index in order.split(sizes)]

    def _shuffle_groups(self, time: Tensor) -> Tensor:
        """An order of quads in which groups of :attr:`together` quads of one step are neighbours, ``[N] → [N]``."""
        order = torch.argsort(time, stable=True)
        _, step, counts = torch.unique_consecutive(time[order], return_inverse=True, return_counts=True)
        place = torch.arange(len(order), device=time.device) - (counts.cumsum(0) - counts)[step]
        groups = -(-counts // self.together)
        group = (groups.cumsum(0) - groups)[step] + place // self.together
        rank = torch.randperm(int(groups.sum()), generator=self.generator, device=time.device)
        return order[torch.argsort(rank[group], stable=True)]

    def _take(self, quads: Quads, index: Tensor) -> Tensor:
        return quads[index] if isinstance(quads, Tensor) else quads.take(index, self.generator)

    def _draw(self, term: Term, quads: Quads, index: Tensor) -> TermBatch | None:
        if not len(index):
            return None
        chosen = self._take(quads, index)
        chosen = chosen[torch.argsort(chosen[:, TIME], stable=True)]
        return TermBatch(chosen, term.draw(chosen, self.sampler, self.generator))

    def state_dict(self) -> dict[str, Any]:
        """The quads that were drawn when the loader was made; virtual ones are not drawn."""
        return {"views": [quads if isinstance(quads, Tensor) else None for quads in self.views]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["views"]) != len(self.views):
            raise ValueError(f"views must have one entry per term, {len(self.views)} (got {len(state['views'])})")
        self.views = [
            mine if theirs is None else theirs for mine, theirs in zip(self.views, state["views"], strict=True)
        ]

    def __repr__(self) -> str:
        return f"TKGLoader({self.num_quads} quads in {len(self)} batches, step {self.time})"
