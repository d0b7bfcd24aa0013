"""Rows of sharded tables: their owners, and look-ups by other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.distributed.communicator import DistributedCommunicator
from tkg_incremental.ops.autograd import Computed, hand_on

#: Rows of every table at some local places.
Read = Callable[[Tensor], Sequence[Tensor]]
#: Receives gradients of every table at some local places, which may repeat.
Receive = Callable[[Tensor, Sequence[Tensor]], None]


class Shards:
    """The owners of the rows of a table: one contiguous range per process, as in torch's ``Shard(0)``.

    Args:
        total: Number of rows.
        communicator: The processes.
    """

    def __init__(self, total: int, communicator: DistributedCommunicator) -> None:
        self.total, self.communicator = total, communicator
        self.stride = -(-total // communicator.size)
        self.begin, self.end = (min(total, self.stride * (communicator.rank + i)) for i in range(2))

    def own(self, index: Tensor) -> Tensor:
        """Whether this process has the rows, ``[*] → [*]``."""
        return (index >= self.begin) & (index < self.end)

    def requests(self, wanted: Tensor) -> tuple[list[int], list[int], Tensor]:
        """Asks the owners of distinct, ascending rows ``[n]``. Every process has to call it, also for no rows.

        Returns:
            The number of rows this process needs from each process, the number of rows each process needs from this
            one, and the local positions of the latter.
        """
        edges = torch.arange(self.communicator.size + 1, device=wanted.device) * self.stride
        to_each = torch.searchsorted(wanted, edges).diff()
        with self.communicator.translate_errors("rows"):
            from_each = torch.empty_like(to_each)
            dist.all_to_all_single(from_each, to_each, group=self.communicator.group)
            needed, requested = to_each.tolist(), from_each.tolist()
            places = wanted.new_empty(sum(requested))
            dist.all_to_all_single(places, wanted, requested, needed, group=self.communicator.group)
        return needed, requested, places - self.begin

    def send(self, rows: Tensor, out: list[int], into: list[int]) -> Tensor:
        """Sends ``out[i]`` rows to process ``i`` and receives ``into[i]``, ``[sum(out), d] → [sum(into), d]``."""
        communicator = self.communicator
        received = rows.new_empty(sum(into), rows.size(1))
        with communicator.translate_errors("rows"):
            dist.all_to_all_single(received, rows.contiguous(), into, out, group=communicator.group)
        communicator.sent += (sum(out) - out[communicator.rank]) * rows.size(1) * rows.element_size()
        return received

    def __repr__(self) -> str:
        return f"Shards({self.begin}–{self.end} of {self.total})"


class Lookup:
    """Rows of sharded tables by id. The rows of all tables come in one exchange.

    An encoder looks up its tables one by one with the same index tensor, and processes may do so in different orders:
    the first look-up fetches the rows of all tables, and the others use them.

    Args:
        shards: Owners of the rows.
        names: Names of the tables.
        read: Reads rows of all tables.
        receive: Receives their gradients; :obj:`None` for frozen tables.
    """

    def __init__(self, shards: Shards, names: Sequence[str], read: Read, receive: Receive | None = None) -> None:
        self.shards, self._names, self._read, self._receive = shards, names, read, receive
        self._anchor = torch.zeros((), requires_grad=receive is not None)
        self._index: Tensor | None = None
        self._found: dict[str, Tensor] = {}

    def rows(self, name: str, index: Tensor) -> Tensor:
        """Rows of one table, ``[*] → [*, width]``."""
        if self._index is not index or name not in self._found:
            wanted, self._place = torch.unique(index, return_inverse=True)
            self._index, self._found = index, dict(zip(self._names, self._fetch(wanted), strict=True))
        # Each once: a second look-up must see changed values.
        return torch.nn.functional.embedding(self._place, self._found.pop(name))

    def _fetch(self, wanted: Tensor) -> Sequence[Tensor]:
        """Distinct, ascending rows of each table."""
        # The functions below must not refer to this object, which keeps the rows.
        shards, receive = self.shards, self._receive
        needed, requested, places = shards.requests(wanted)
        tables = self._read(places)
        widths = [table.size(1) for table in tables]

        def fetch(_: Tensor) -> Computed:
            return shards.send(torch.cat(list(tables), dim=1), requested, needed), ()

        def give_back(grad: Tensor, *_: object) -> list[None]:
            assert receive is not None
            # The mean over the processes, as for replicated tables.
            received = shards.send(grad / shards.communicator.size, needed, requested)
            receive(places, received.split(widths, dim=1))
            return [None]

        (rows,) = hand_on([], [self._anchor], fetch, give_back)
        return rows.split(widths, dim=1)
