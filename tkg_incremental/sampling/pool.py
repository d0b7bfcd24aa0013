"""Whom the negatives of a step are drawn from."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline


class Pool:
    """Everybody, or every ``stride``-th entity in the order of first appearance.

    Negatives of their own for ten thousand rows touch most entities of any graph; drawn from a pool they touch the
    pool. Members are numbered by *columns* like the entities of a timeline: those known at ``t`` are
    ``order[:num_known[t]]``.

    Args:
        timeline: The graph.
        stride: One entity in so many is a member.
        start: The first that is one, below ``stride``.
    """

    def __init__(self, timeline: Timeline, stride: int = 1, start: int = 0) -> None:
        if not 0 <= start < (limit := min(stride, timeline.num_entities)):
            raise ValueError(f"start must lie in 0 … {limit - 1} (got {start})")
        self._line, self.stride, self.start = timeline, stride, start

    @classmethod
    def draw(cls, timeline: Timeline, time: int, size: int | None, seed: int) -> Pool:
        """At least ``size`` of those who are known at ``time``, and fewer than twice as many; everybody if there are no
        more, or if it is :obj:`None`. By the start that is drawn, each is as likely a member as any other."""
        stride = 1 if size is None else max(1, int(timeline.num_known[time]) // size)
        start = torch.randint(stride, (), generator=torch.Generator().manual_seed(seed))
        return cls(timeline, stride, int(start))

    @property
    def is_everybody(self) -> bool:
        return self.stride == 1

    @cached_property
    def order(self) -> Tensor:
        """``[n]`` the members by first appearance."""
        return self._line.order[self.start :: self.stride].contiguous()

    @cached_property
    def num_known(self) -> Tensor:
        """``[num_steps]`` how many members are known at each step."""
        return (self._line.num_known + (self.stride - 1 - self.start)) // self.stride

    @cached_property
    def num_encoded(self) -> Tensor:
        """``[num_steps]`` how many members to encode at each step: those who are known, and at least one, for rows
        without anybody to draw name the first."""
        return self.num_known.clamp(min=1)

    def among(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Of the timeline's columns ``[n]``, which belong to members, ``[n]``, and what columns these have here."""
        inside = (columns - self.start) % self.stride == 0
        return inside, (columns[inside] - self.start) // self.stride

    def __repr__(self) -> str:
        return "Pool(everybody)" if self.is_everybody else f"Pool({len(self.order)} of {self._line.num_entities})"
