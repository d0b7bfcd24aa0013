"""Rows of tables that no process has whole: who has which, and how the others get at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.distributed.world import Processes

#: Rows of every table at some local places.
Read = Callable[[Tensor], Sequence[Tensor]]
#: Takes gradients of every table at some local places, of which some may be the same.
Receive = Callable[[Tensor, Sequence[Tensor]], None]


class Shards:
    """Which rows are whose: one stretch a process, as torch's ``Shard(0)`` deals them.

    Args:
        total: How many rows there are.
        world: The processes.
    """

    def __init__(self, total: int, world: Processes) -> None:
        self.total, self.world = total, world
        self.stride = -(-total // world.size)
        self.begin, self.end = (min(total, self.stride * (world.rank + i)) for i in range(2))

    def own(self, index: Tensor) -> Tensor:
        """Whether rows are this process', ``[*] → [*]``."""
        return (index >= self.begin) & (index < self.end)

    def route(self, wanted: Tensor) -> Route:
        """The way to rows ``[n]`` that ascend, and differ. Every process has to ask, if only for nothing."""
        device, size = wanted.device, self.world.size
        edges = torch.arange(size + 1, device=device) * self.stride
        to_each = torch.searchsorted(wanted, edges).diff()
        with self.world.talking("rows"):
            from_each = torch.empty_like(to_each)
            dist.all_to_all_single(from_each, to_each, group=self.world.group)
            ask, asked = to_each.tolist(), from_each.tolist()
            places = wanted.new_empty(sum(asked))
            dist.all_to_all_single(places, wanted, asked, ask, group=self.world.group)
        return Route(self, ask, asked, places - self.begin)

    def __repr__(self) -> str:
        return f"Shards({self.begin}–{self.end} of {self.total})"


class Route:
    """The way between this process' wishes and the rows' owners.

    Args:
        shards: Whose rows are whose.
        ask: How many rows this process wants of each.
        asked: How many rows each wants of this one.
        places: ``[sum(asked)]`` which of its own rows those are.
    """

    def __init__(self, shards: Shards, ask: list[int], asked: list[int], places: Tensor) -> None:
        self._shards, self._ask, self._asked, self.places = shards, ask, asked, places

    def fetch(self, rows: Tensor) -> Tensor:
        """What was asked for, from what each was asked for: ``[sum(asked), d] → [n, d]``."""
        return self._send(rows, self._asked, self._ask)

    def give_back(self, rows: Tensor) -> Tensor:
        """The other way: ``[n, d] → [sum(asked), d]``."""
        return self._send(rows, self._ask, self._asked)

    def _send(self, rows: Tensor, out: list[int], into: list[int]) -> Tensor:
        world = self._shards.world
        received = rows.new_empty(sum(into), rows.size(1))
        with world.talking("rows"):
            dist.all_to_all_single(received, rows.contiguous(), into, out, group=world.group)
        world.sent += (sum(out) - out[world.rank]) * rows.size(1) * rows.element_size()
        return received


class Lookup:
    """Rows of sharded tables by their global number. What a batch needs of all tables comes in one exchange.

    An encoder asks its tables one by one, with the same tensor of numbers, and processes may do so in another order:
    the first question brings the rows of all tables, and the others find them there.

    Args:
        shards: Whose rows are whose.
        names: The tables.
        read: Reads rows of all of them.
        receive: Takes their gradients; without it nothing is learnt.
    """

    def __init__(self, shards: Shards, names: Sequence[str], read: Read, receive: Receive | None = None) -> None:
        self.shards, self._names, self._read, self._receive = shards, names, read, receive
        self._anchor = torch.zeros((), requires_grad=receive is not None)
        self._index: Tensor | None = None
        self._found: dict[str, Tensor] = {}

    def rows(self, name: str, index: Tensor) -> Tensor:
        """Rows of one table, ``[*] → [*, width]``."""
        if self._index is not index or name not in self._found:
            wanted, place = torch.unique(index, return_inverse=True)
            distinct = _Fetch.apply(self._anchor, wanted, self.shards, self._read, self._receive)
            self._place, self._index = place, index
            self._found = dict(zip(self._names, distinct, strict=True))
        # Each once: who asks again wants to know what has changed.
        return torch.nn.functional.embedding(self._place, self._found.pop(name))


class _Fetch(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, wanted: Tensor, shards: Shards, read: Read, receive: Receive | None
    ) -> tuple[Tensor, ...]:
        ctx.route, ctx.size, ctx.receive = shards.route(wanted), shards.world.size, receive
        tables = read(ctx.route.places)
        ctx.widths = [table.size(1) for table in tables]
        return ctx.route.fetch(torch.cat(list(tables), dim=1)).split(ctx.widths, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # The mean over the processes, as for tables that all of them have.
        received = ctx.route.give_back(torch.cat(gradients, dim=1).div_(ctx.size))
        ctx.receive(ctx.route.places, received.split(ctx.widths, dim=1))
        return None, None, None, None, None
