"""Models whose entity tables are divided among processes, because no process can hold them whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tkg_incremental.communicator import Communicator
from tkg_incremental.distributed.communicator import DistributedCommunicator
from tkg_incremental.distributed.sharded_counting import count_sharded
from tkg_incremental.distributed.shards import Lookup, Shards
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Axis, RowSource
from tkg_incremental.ops.ranking import RankedAnswers
from tkg_incremental.optim.touched_rows import TouchedRows

# Rows at a time, which bounds the memory: of initial values, of which every process draws all and keeps its own, and of
# candidates.
_ROWS_AT_A_TIME = 1 << 16


class ShardedModel(TKGModel):
    """A model whose entity tables are divided among processes.

    Its entity tables are parameters of type :class:`~torch.distributed.tensor.DTensor`, sharded by rows. A look-up of
    rows is a collective operation: all processes have to take part.
    """

    # Each process would decide by its part of a batch, and then the look-ups of the processes might not match.
    encodes_together = False
    is_sharded = True
    shards: Shards
    local: dict[str, Tensor]
    _lookup: Lookup

    def rows(self, name: str, index: Tensor) -> Tensor:
        if not self.reads_tables or name not in self.local:
            return super().rows(name, index)
        return self._lookup.rows(name, index)

    def uses_whole_tables(self, order: Tensor, sizes: Sequence[int]) -> bool:
        return False

    def tables(self, axis: Axis | None = None) -> dict[str, nn.Parameter]:
        """The tables of this process: of sharded ones, its own rows."""
        tables: dict[str, Any] = super().tables(axis)
        return {name: self.local.get(name, table) for name, table in tables.items()}

    def replicated_tables(self) -> dict[str, nn.Parameter]:
        return {name: table for name, table in self.tables().items() if name not in self.local}

    def former_rows(self, touched: TouchedRows) -> RowSource:
        """Former values of the rows this process updates; others are looked up on their owners."""
        names = list(self.local)
        lookup = Lookup(self.shards, names, lambda places: [touched.look_up(name, places) for name in names])
        return lambda name, index: lookup.rows(name, index) if name in names else touched.look_up(name, index)

    def row_ids(self, name: str, index: Tensor) -> Tensor:
        return index + self.shards.begin if name in self.local else index

    def gradient_norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """Over the rows of all processes; replicated tables count once."""
        squares = torch.zeros(2, dtype=torch.double, device=next(iter(gradients.values())).device)
        for name, gradient in gradients.items():
            squares[int(name in self.local)] += gradient.double().square().sum()
        communicator = self.shards.communicator
        with communicator.translate_errors("the norm of a gradient"):
            dist.all_reduce(squares[1:], group=communicator.group)
        return squares.sum().sqrt().to(gradient.dtype)

    def sum_tables(self, values: dict[str, Tensor]) -> Tensor:
        """Over the rows of all processes; replicated tables count once."""
        sums = torch.zeros(2, dtype=torch.double)
        for name, value in values.items():
            sums[int(name in self.local)] += value
        communicator = self.shards.communicator
        with communicator.translate_errors("a sum over tables"):
            dist.all_reduce(sums[1:], group=communicator.group)
        return sums.sum()

    @torch.no_grad()
    def initialize(
        self, axis: Axis, index: Tensor, generator: torch.Generator | None = None, only: str | None = None
    ) -> None:
        if axis != "entity":
            super().initialize(axis, index, generator, only)
            return
        for name, table in self.local.items():
            if only in (None, name):
                bound = self.initial_bound(name)
                for some in index.split(_ROWS_AT_A_TIME):
                    fresh = torch.empty(len(some), table.size(1)).uniform_(-bound, bound, generator=generator)
                    self.put(name, some, fresh)

    def put(self, name: str, index: Tensor, rows: Tensor) -> None:
        if name in self.local:
            mine = self.shards.own(index)
            index, rows = index[mine] - self.shards.begin, rows[mine.to(rows.device)]
        super().put(name, index, rows)

    def expand_tables(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("sharded tables cannot grow; make them large enough")

    def rank_counter(
        self,
        known: Tensor,
        step: int,
        communicator: Communicator,
        limit: int | None = None,
        vectors: Tensor | None = None,
    ) -> Callable[[Sequence[RankedAnswers]], list[Tensor]]:
        """All processes take part in every step: each scores its own candidates. No process has all ``vectors``."""
        # Ascending, so that a column is found by bisection.
        columns = self.shards.own(known).nonzero().squeeze(1)
        here = self._only_own()
        dtype = next(iter(self.local.values())).dtype
        candidates = torch.empty(len(columns), self.hidden_channels, device=known.device, dtype=dtype)
        for start in range(0, len(columns), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            candidates[part] = here.candidate_vectors(known[columns[part]], step)
        return lambda sets: count_sharded(sets, candidates, columns, self.decoder.similarity, self.shards)

    def _only_own(self) -> ShardedModel:
        """This model for the rows of this process, addressed by entity ids, without communication."""

        def own(name: str, index: Tensor) -> Tensor:
            if name not in self.local:
                return self.get_parameter(name).detach()[index]
            return self.local[name][index - self.shards.begin]

        return self.with_rows_of(own)


def shard_entities(
    make: Callable[[], TKGModel], communicator: Communicator, seed: int = 0, device: str = "cpu"
) -> TKGModel:
    """A model with its entity tables divided among the processes by rows; no process ever holds a whole one.

    It has the same initial values as the model of a single process. It is trained with a row-wise optimizer and
    sampled negatives, and ranks candidates shard by shard. Its ``state_dict()`` has distributed tensors, for
    :mod:`torch.distributed.checkpoint`.

    Args:
        make: Makes the model, as in ``lambda: DE(num_entities, num_relations, num_steps)``.
        communicator: The processes.
        seed: Seed of the initial values.
        device: Where this process keeps its rows.
    """
    if not isinstance(communicator, DistributedCommunicator):
        return make().to(device)
    # Imported here, because the import is slow and seldom needed.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    with torch.device("meta"):
        model = make()
    sharded: Any = model
    kind = type(model)
    sharded.__class__ = type(kind.__name__, (ShardedModel, kind), {})
    shards = sharded.shards = Shards(model.sizes["entity"], communicator)
    mesh = init_device_mesh(torch.device(device).type, (communicator.size,))
    sharded.local = {}
    for name, axis in model.axes.items():
        table = model.get_parameter(name)
        whole: Tensor = torch.empty(0)
        if axis == "entity":
            local = sharded.local[name] = torch.empty(shards.end - shards.begin, table.size(1), device=device)
            whole = DTensor.from_local(
                local, mesh, [Shard(0)], run_check=False, shape=table.shape, stride=(table.size(1), 1)
            )
        else:
            whole = torch.empty(table.shape, device=device)
        model.register_parameter(name, nn.Parameter(whole))
    tables = sharded.local

    def read(places: Tensor) -> Sequence[Tensor]:
        return [table.index_select(0, places) for table in tables.values()]

    def receive(places: Tensor, gradients: Sequence[Tensor]) -> None:
        for table, gradient in zip(tables.values(), gradients, strict=True):
            rows = torch.sparse_coo_tensor(places[None], gradient, table.shape, check_invariants=False)
            table.grad = rows if table.grad is None else table.grad + rows

    sharded._lookup = Lookup(shards, list(tables), read, receive)
    model.reset_parameters(seed)
    return model
