"""Candidate pool for negative sampling."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.seeding import make_generator


class CandidatePool:
    """The entities that the negatives of a step are drawn from: all of them, or every ``stride``-th.

    Negatives for ten thousand quads touch most entities of any graph. Drawn from a pool they touch the pool, so the
    cost of a step does not grow with the graph. The members that are known at ``t`` are ``entities[:num_known[t]]``.

    Args:
        timeline: The graph.
        stride: One entity in ``stride`` is a member, in the order of first appearance.
        start: Position of the first member, below ``stride``.
    """

    def __init__(self, timeline: Timeline, stride: int = 1, start: int = 0) -> None:
        if not 0 <= start < (limit := min(stride, timeline.num_entities)):
            raise ValueError(f"start must lie in 0 … {limit - 1} (got {start})")
        self._timeline, self.stride, self.start = timeline, stride, start

    @classmethod
    def draw(cls, timeline: Timeline, time: int, size: int | None, seed: int) -> CandidatePool:
        """A pool of at least ``size`` and fewer than ``2 × size`` of the entities known at ``time``; all of them if
        there are fewer or if ``size`` is :obj:`None`. Every entity is a member with the same probability."""
        stride = 1 if size is None else max(1, int(timeline.num_known[time]) // size)
        return cls(timeline, stride, int(torch.randint(stride, (), generator=make_generator(seed, "pool", time))))

    @property
    def has_all(self) -> bool:
        """Whether every entity is a member."""
        return self.stride == 1

    @cached_property
    def entities(self) -> Tensor:
        """``[P]`` the members by first appearance."""
        return self._timeline.order[self.start :: self.stride].contiguous()

    @cached_property
    def num_known(self) -> Tensor:
        """``[num_steps]`` number of members known at each step."""
        return (self._timeline.num_known + (self.stride - 1 - self.start)) // self.stride

    @cached_property
    def position(self) -> Tensor:
        """``[num_entities]`` the position of each entity in :attr:`entities`, -1 for those that are not members."""
        position = torch.full((self._timeline.num_entities,), -1, device=self._timeline.device)
        return position.index_copy_(0, self.entities, torch.arange(len(self.entities), device=position.device))

    def __repr__(self) -> str:
        return f"CandidatePool({len(self.entities)} of {self._timeline.num_entities})"
