"""The row-wise optimiser for entity tables that are spread over processes: each moves its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.distributed.sharded import ShardedEncoder
from tkg_incremental.distributed.shards import Lookup
from tkg_incremental.models.base import TKGModel
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
            return [super(ShardedRows, self).look_up(name, places) for name in names]

        self._lookup = Lookup(encoder.shards, names, read)
        # Not a frozen model: what that has encoded before it does not look up again, and others might have to.
        self.previous = TKGModel(encoder.with_rows_of(self), model.decoder, model.catalog)  # type: ignore[assignment]

    def look_up(self, name: str, index: Tensor) -> Tensor:
        return self._lookup.rows(name, index) if name in self._spread else super().look_up(name, index)


class ShardedRowAdam(RowAdam):
    """:class:`~tkg_incremental.training.RowAdam` for a model of :func:`~tkg_incremental.distributed.shard_entities`.

    Gradients are clipped by their norm over all processes.

    Args:
        model: The model to optimise.
        *args: As for the row-wise optimiser.
        **options: As for the row-wise optimiser.
    """

    memory_kind = ShardedRows

    def __init__(self, model: TKGModel, *args: Any, **options: Any) -> None:
        encoder = model.encoder
        assert isinstance(encoder, ShardedEncoder)
        self._shards, self._sharded = encoder.shards, frozenset(encoder.local)
        super().__init__(model, *args, **options)

    def _numbers(self, name: str, index: Tensor) -> Tensor:
        return index + self._shards.begin if name in self._sharded else index

    def _norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """Of the rows of all processes; what all of them have counts once."""
        squares = torch.zeros(2, dtype=torch.double, device=next(iter(gradients.values())).device)
        for name, gradient in gradients.items():
            squares[int(name in self._sharded)] += gradient.double().square().sum()
        with self._shards.world.talking("the norm of a gradient"):
            dist.all_reduce(squares[1:], group=self._shards.world.group)
        return squares.sum().sqrt().to(gradient.dtype)
