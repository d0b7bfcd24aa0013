"""Models whose entity tables are spread over the processes, because they fit into none of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tkg_incremental.distributed.shards import Lookup, Shards
from tkg_incremental.distributed.world import Processes, World
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Axis, Encoder

# Initial values drawn at a time: every process draws all of them, and keeps its own.
_ROWS_AT_A_TIME = 1 << 16


class ShardedEncoder(Encoder):
    """What an encoder becomes when its entity tables are spread over processes.

    Its entity tables are parameters of type :class:`~torch.distributed.tensor.DTensor`, sharded by rows. To look rows
    up is something the processes do together: all of them have to ask, at the same time.
    """

    # It is worth it for one process and not for another, and then they would not ask at the same time.
    encodes_together = False
    shards: Shards
    local: dict[str, Tensor]
    _lookup: Lookup

    def rows(self, name: str, index: Tensor) -> Tensor:
        if self._source is not None or name not in self.local:
            return super().rows(name, index)
        return self._lookup.rows(name, index)

    def takes_whole_tables(self, order: Tensor, sizes: Sequence[int]) -> bool:
        return False

    def tables(self, axis: Axis | None = None) -> dict[str, nn.Parameter]:
        """Tables as this process has them: its own rows, of those that are spread."""
        tables: dict[str, Any] = super().tables(axis)
        return {name: self.local.get(name, table) for name, table in tables.items()}

    @torch.no_grad()
    def initialise(
        self, axis: Axis, index: Tensor, generator: torch.Generator | None = None, only: str | None = None
    ) -> None:
        if axis != "entity":
            super().initialise(axis, index, generator, only)
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

    def expand(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("tables that are spread over processes cannot grow; make them large enough")

    def only_own(self) -> Encoder:
        """This encoder for the rows of this process, by their global numbers, without asking anybody."""
        return self.with_rows_of(_OwnRows(self))


class _OwnRows:
    def __init__(self, encoder: ShardedEncoder) -> None:
        self._encoder = encoder

    def look_up(self, name: str, index: Tensor) -> Tensor:
        encoder = self._encoder
        if name not in encoder.local:
            return encoder.get_parameter(name).detach()[index]
        return encoder.local[name][index - encoder.shards.begin]


def shard_entities(make: Callable[[], TKGModel], world: World, seed: int = 0, device: str = "cpu") -> TKGModel:
    """A model with its entity tables spread over the processes, row by row; no process ever holds a whole one.

    It has the same initial values as the model that one process makes. It is learnt with the row-wise optimiser from
    sampled negatives, and ranks candidates shard by shard. Its ``state_dict()`` is made of distributed tensors, for
    :mod:`torch.distributed.checkpoint`.

    Args:
        make: Makes the model, as in ``lambda: DE(num_entities, num_relations, num_steps)``.
        world: The processes.
        seed: Seed of the initial values.
        device: Where this process keeps its rows.
    """
    if not isinstance(world, Processes):
        return make().to(device)
    # Here, because they take a while to import, and few need them.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    with torch.device("meta"):
        model = make()
    encoder: Any = model.encoder
    kind = type(encoder)
    encoder.__class__ = type(f"Sharded{kind.__name__}", (ShardedEncoder, kind), {})
    shards = encoder.shards = Shards(encoder.sizes["entity"], world)
    mesh = init_device_mesh(torch.device(device).type, (world.size,))
    encoder.local = {}
    for name, axis in encoder.axes.items():
        table = encoder.get_parameter(name)
        whole: Tensor = torch.empty(0)
        if axis == "entity":
            local = encoder.local[name] = torch.empty(shards.end - shards.begin, table.size(1), device=device)
            whole = DTensor.from_local(
                local, mesh, [Shard(0)], run_check=False, shape=table.shape, stride=(table.size(1), 1)
            )
        else:
            whole = torch.empty(table.shape, device=device)
        encoder.register_parameter(name, nn.Parameter(whole))
    tables = encoder.local

    def read(places: Tensor) -> Sequence[Tensor]:
        return [table.index_select(0, places) for table in tables.values()]

    def receive(places: Tensor, gradients: Sequence[Tensor]) -> None:
        for table, gradient in zip(tables.values(), gradients, strict=True):
            rows = torch.sparse_coo_tensor(places[None], gradient, table.shape, check_invariants=False)
            table.grad = rows if table.grad is None else table.grad + rows

    encoder._lookup = Lookup(shards, list(tables), read, receive)
    encoder.reset_parameters(torch.Generator().manual_seed(seed))
    return model


def is_sharded(model: TKGModel) -> bool:
    """Whether the model's entity tables are spread over processes."""
    return isinstance(model.encoder, ShardedEncoder)


def whole_parameters(model: TKGModel) -> list[nn.Parameter]:
    """The parameters that every process has whole."""
    spread = model.encoder.local if isinstance(model.encoder, ShardedEncoder) else {}
    return [parameter for name, parameter in model.named_parameters() if name.removeprefix("encoder.") not in spread]
