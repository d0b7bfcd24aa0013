"""Views: which quads a term learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data import LazyQuads, Timeline
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.loader.replay import SAMPLINGS, ReplaySampling, sample_replay
from tkg_incremental.ops.answers import SIDES, AnswerIndex, Side

#: Number of steps back.
Reach = int | Literal["all"]


class View:
    """Selects the quads of a term when a step begins."""

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor | LazyQuads:
        """``[n, 4]`` head, rel, tail, time; or virtual quads, which must not depend on ``generator``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True)
class Added(View):
    """Facts that did not hold at the step before.

    Args:
        repeats: Number of times each fact is visited per epoch.
    """

    repeats: int = 1

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1 (got {self.repeats})")

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor:
        return timeline.observed.added(time).repeat(self.repeats, 1)


class Given(View):
    """Given quads.

    Args:
        quads: ``[n, 4]`` head, rel, tail, time; or virtual quads on the device of the timeline.
    """

    def __init__(self, quads: Tensor | LazyQuads) -> None:
        self.quads = quads

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor | LazyQuads:
        return self.quads.to(timeline.device) if isinstance(self.quads, Tensor) else self.quads

    def __repr__(self) -> str:
        return f"Given({len(self.quads)} quads)"


@dataclass(frozen=True)
class Current(View):
    """All facts of the step.

    Args:
        limit: Maximum number of quads, drawn at each step; :obj:`None` for all.
    """

    limit: int | None = None

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor:
        return _at_most(timeline.observed.at(time), self.limit, generator)


@dataclass(frozen=True)
class History(View):
    """All facts up to the step: what a base model learns.

    Args:
        visits: Number of quads per fact and epoch, at steps drawn from the fact's interval; :obj:`None` for every quad,
            which is the paper's protocol.
    """

    visits: int | None = None

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> LazyQuads:
        quads = timeline.observed.between(0, time)
        return quads if self.visits is None else quads.visits(self.visits)


@dataclass(frozen=True)
class Deleted(View):
    """Facts of the last steps that no longer hold, as quads of the step.

    Args:
        window: Number of steps back.
        limit: Maximum number of quads, drawn at each step.
        unreplaced: Only facts with a query that has no answer at the step.
    """

    window: int = 10
    limit: int = 10_000
    unreplaced: bool = False

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor:
        quads = timeline.observed.deleted(time, self.window)
        if self.unreplaced:
            quads = quads[has_no_answer(timeline, quads).any(0)]
        return _at_most(quads, self.limit, generator)


@dataclass(frozen=True)
class Replayed(View):
    """Quads of the last steps, all or a sample (:func:`~tkg_incremental.loader.sample_replay`).

    Args:
        window: Number of steps back, or ``"all"``.
        size: Number of quads; :obj:`None` for every quad of these steps.
        sampling: ``"uniform"``, ``"frequency"``, ``"inverse"``, ``"boundary"`` or ``"fact"``.
    """

    window: Reach = 10
    size: int | None = 10_000
    sampling: ReplaySampling = "uniform"

    def __post_init__(self) -> None:
        if self.window != "all" and self.window < 1:
            raise ValueError(f"window must be 'all' or at least 1 (got {self.window})")
        if self.size is not None and self.size < 0:
            raise ValueError(f"size must be None or at least 0 (got {self.size})")
        if self.sampling not in SAMPLINGS:
            raise ValueError(f"sampling must be one of {', '.join(SAMPLINGS)} (got {self.sampling!r})")

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor | LazyQuads:
        window = max(1, time) if self.window == "all" else self.window
        if self.size is None:
            return timeline.observed.between(time - window, time - 1)
        return sample_replay(timeline, time, window, self.size, self.sampling, generator)


@dataclass(frozen=True)
class Successors(View):
    """Current facts that replaced others: a query of theirs has deleted answers.

    Args:
        window: Number of steps back that replaced facts reach.
        limit: Maximum number of quads, drawn at each step.
    """

    window: int = 10
    limit: int = 10_000

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor:
        current = timeline.observed.at(time)
        replaced = torch.zeros(len(current), dtype=torch.bool, device=current.device)
        for side in SIDES:
            replaced |= deleted_answers(timeline, time, side, self.window).has_answers(current)
        return _at_most(current[replaced], self.limit, generator)


def deleted_answers(timeline: Timeline, time: int, side: Side, window: int) -> AnswerIndex:
    """The answers that queries of a step had in the ``window`` steps before and no longer have."""
    quads = timeline.observed.deleted(time, window)
    return AnswerIndex(one_step_facts(quads), side, timeline.num_entities, timeline.num_relations)


def has_no_answer(timeline: Timeline, quads: Tensor) -> Tensor:
    """Whether queries have no answer among the train facts of their step, ``[B, 4] → [2, B]``, tail queries first."""
    return torch.stack([~timeline.answers(side, "train").has_answers(quads) for side in SIDES])


def _at_most(quads: Tensor, limit: int | None, generator: torch.Generator) -> Tensor:
    if limit is None or len(quads) <= limit:
        return quads
    return quads[torch.randperm(len(quads), generator=generator, device=quads.device)[:limit]]
