"""Virtual rows: the quads of a set of facts, written only when they are taken."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.data.intervals import sort_quads
from tkg_incremental.ops.answers import FIRST, LAST, TIME

# A sample that is at least this share of all rows is a prefix of a permutation; a smaller one is drawn row by row.
_PERMUTED_SHARE = 1 / 4


class LazyQuads:
    r"""The quads (fact, step) of facts as virtual rows.

    Row :math:`i` is found in the running sum of the facts' row counts. Memory follows the number of facts, and only the
    rows that are taken are written.

    Args:
        facts: ``[F, 5]`` head, rel, tail, first, last.
        counts: ``[F]`` number of rows of each fact. Without it, a fact has one row for each step of its interval. With
            it, the interval is divided into that many equal parts, and each row has a step that is drawn from its part
            when the row is taken. All steps of a fact are equally likely, and a fact with as many rows as steps has one
            row at each step.
    """

    def __init__(self, facts: Tensor, counts: Tensor | None = None) -> None:
        self.facts = facts
        self._duration = facts[:, LAST] - facts[:, FIRST] + 1
        self._drawn = counts is not None
        self._counts = self._duration if counts is None else counts
        self._ends = torch.cumsum(self._counts, 0)
        self._len = int(self._ends[-1]) if len(facts) else 0

    @property
    def device(self) -> torch.device:
        return self.facts.device

    def take(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The rows at ``index``, ``[n] → [n, 4]``.

        Args:
            index: ``[n]`` row numbers in ``0 … len(self) - 1``.
            generator: Draws the steps of rows if row counts were given.
        """
        fact = torch.searchsorted(self._ends, index, right=True)
        place = index - self._ends[fact] + self._counts[fact]
        if self._drawn:
            place = self._draw_steps(place, fact, generator)
        quads = self.facts[fact, : TIME + 1]
        quads[:, TIME] += place
        return quads

    def quads(self) -> Tensor:
        """All rows ``[N, 4]``, sorted by time, head, rel, tail."""
        if self._drawn:
            raise ValueError("quads needs one row per step (these rows have randomly drawn steps: use take or sample)")
        return sort_quads(self.take(torch.arange(len(self), device=self.device)))

    def sample(self, size: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws ``min(size, len(self))`` rows uniformly without replacement. The cost follows ``size``.

        Args:
            size: Number of rows.
            generator: Source of randomness.
        """
        if size >= len(self):
            return self.take(torch.arange(len(self), device=self.device), generator)
        return self.take(sample_indices(len(self), size, generator).to(self.device), generator)

    def visits(self, per_fact: int) -> LazyQuads:
        """At most ``per_fact`` rows of each fact, at steps drawn from its interval when they are taken."""
        if per_fact < 1:
            raise ValueError(f"per_fact must be at least 1 (got {per_fact})")
        return LazyQuads(self.facts, self._duration.clamp(max=per_fact))

    def _draw_steps(self, place: Tensor, fact: Tensor, generator: torch.Generator | None) -> Tensor:
        device = self.device if generator is None else generator.device
        # 24 random bits: place + share is exact in double precision and never rounds up to the next part.
        share = torch.rand(len(place), generator=generator, device=device).to(self.device, torch.double)
        duration = self._duration[fact]
        step = ((place + share) * duration / self._counts[fact]).long()
        return torch.minimum(step, duration - 1)

    def __len__(self) -> int:
        return self._len

    def __repr__(self) -> str:
        return f"LazyQuads({len(self)} rows of {len(self.facts)} facts)"


def sample_indices(count: int, size: int, generator: torch.Generator | None = None) -> Tensor:
    """Draws ``size`` different numbers below ``count``, in random order, on the generator's device."""
    device = torch.device("cpu") if generator is None else generator.device
    if size >= count * _PERMUTED_SHARE:
        return torch.randperm(count, generator=generator, device=device)[:size]
    drawn = torch.empty(0, dtype=torch.long, device=device)
    while len(drawn) < size:
        more = torch.randint(count, (2 * (size - len(drawn)),), generator=generator, device=device)
        drawn = torch.unique(torch.cat([drawn, more]))
    # A random part of the distinct numbers: by symmetry each set of `size` numbers is equally likely.
    return drawn[torch.randperm(len(drawn), generator=generator, device=device)[:size]]
