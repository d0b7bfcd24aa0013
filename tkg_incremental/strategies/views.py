"""Views: which rows a term learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot
from tkg_incremental.sampling.replay import SAMPLINGS, ReplaySampling, sample_replay

#: How many steps back.
Reach = int | Literal["all"]


class View:
    """Picks rows at the start of a step."""

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        """``[n, 4]`` head, rel, tail, time."""
        raise NotImplementedError


@dataclass(frozen=True)
class Added(View):
    """Facts that did not hold at the step before."""

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        return snapshot.added


@dataclass(frozen=True)
class Current(View):
    """All facts of the step."""

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        return snapshot.current


@dataclass(frozen=True)
class History(View):
    """All facts up to the step: what a base model learns."""

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        return snapshot.timeline.observed.between(0, snapshot.time)


@dataclass(frozen=True)
class Deleted(View):
    """Facts of the window that no longer hold, as rows of the step.

    Args:
        window: How many steps back.
        limit: At most so many of them, drawn anew each step.
    """

    window: int = 10
    limit: int = 10_000

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        rows = self.all(snapshot)
        if len(rows) > self.limit:
            rows = rows[torch.randperm(len(rows), generator=generator, device=rows.device)[: self.limit]]
        return rows

    def all(self, snapshot: Snapshot) -> Tensor:
        """Those there are to draw from."""
        return snapshot.deleted(self.window)


@dataclass(frozen=True)
class Window(View):
    """Every fact of the steps before, as it was then.

    Args:
        window: How many steps back.
    """

    window: int = 10

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        return snapshot.replay(self.window)


@dataclass(frozen=True)
class Replayed(View):
    """A sample of the facts of the steps before.

    Args:
        window: How many steps back, or ``"all"``.
        size: How many facts.
        sampling: ``"uniform"``, ``"frequency"``, ``"inverse"`` or ``"turns"``
            (:func:`~tkg_incremental.sampling.sample_replay`).
    """

    window: Reach = 10
    size: int = 10_000
    sampling: ReplaySampling = "uniform"

    def __post_init__(self) -> None:
        if self.window != "all" and self.window < 1:
            raise ValueError(f"window must be 'all' or at least 1 (got {self.window})")
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling must be one of {SAMPLINGS} (got {self.sampling!r})")

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        window = max(1, snapshot.time) if self.window == "all" else self.window
        return sample_replay(snapshot, window, self.size, self.sampling, generator)
