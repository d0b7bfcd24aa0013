"""The row-wise optimiser for entity tables that are spread over processes: each moves its own rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.distributed.sharded import ShardedEncoder
from tkg_incremental.distributed.shards import Lookup
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Axis
from tkg_incremental.training.memory import TouchedRows
from tkg_incremental.training.optimizers import RowAdam


class ShardedRows(TouchedRows):
    """Old values of the rows this process moves, and on demand those of others.

    Args:
        model: The model about to learn.
    """

    def __init__(self, model: TKGModel) -> None:
        super().__init__(model)
        encoder = model.encoder
        assert isinstance(encoder, ShardedEncoder)
        names = self._spread = list(encoder.local)

        def read(places: Tensor) -> Sequence[Tensor]:
            return [super(ShardedRows, self).former(name, places) for name in names]

        self._lookup = Lookup(encoder.shards, names, read)
        # Not a frozen model: what that has encoded before it does not look up again, and others might have to.
        self.previous = TKGModel(encoder.as_before(self), model.decoder, model.catalog)  # type: ignore[assignment]

    def former(self, name: str, index: Tensor) -> Tensor:
        return self._lookup.rows(name, index) if name in self._spread else super().former(name, index)


class ShardedRowAdam(RowAdam):
    """:class:`~tkg_incremental.training.RowAdam` for a model of :func:`~tkg_incremental.distributed.shard_entities`.

    Args:
        model: The model to optimise.
        lr: Learning rate.
        weight_decay: Weight of the L2 penalty on touched rows.
        max_norm: The norm of the whole gradient, over all processes, is clipped to this.
        pull: Adds ``pull`` × (row − row before the step) to the gradient of touched rows.
        pulled: Tells of rows of an axis which are pulled; by default all.
        **options: As for the row-wise optimiser.
    """

    def __init__(
        self,
        model: TKGModel,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        max_norm: float = 1.0,
        pull: float = 0.0,
        pulled: Callable[[Axis, Tensor], Tensor] | None = None,
        **options: Any,
    ) -> None:
        encoder = model.encoder
        assert isinstance(encoder, ShardedEncoder)
        self._shards, self._sharded = encoder.shards, frozenset(encoder.local)

        def pulled_here(axis: Axis, index: Tensor) -> Tensor:
            assert pulled is not None
            return pulled(axis, index + self._shards.begin if axis == "entity" else index)

        super().__init__(model, lr, weight_decay, max_norm, pull, None if pulled is None else pulled_here, **options)
        self.rows = self.memory = ShardedRows(model)

    def _norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """Of the rows of all processes; what all of them have counts once."""
        squares = torch.zeros(2, dtype=torch.double, device=next(iter(gradients.values())).device)
        for name, gradient in gradients.items():
            squares[int(name in self._sharded)] += gradient.double().square().sum()
        with self._shards.world.talking("the norm of a gradient"):
            dist.all_reduce(squares[1:], group=self._shards.world.group)
        return squares.sum().sqrt().to(gradient.dtype)
