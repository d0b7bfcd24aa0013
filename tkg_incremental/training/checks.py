"""What several processes cannot do, said before they begin."""

from __future__ import annotations

import os

from tkg_incremental.distributed.sharded import is_sharded
from tkg_incremental.distributed.world import World
from tkg_incremental.models.base import TKGModel
from tkg_incremental.strategies import Strategy


def check_shared(strategy: Strategy, world: World) -> None:
    """Refuses a strategy that several processes cannot share: gradients must be averaged before they are changed."""
    if world.size > 1 and type(strategy).backward is not Strategy.backward:
        raise ValueError(
            f"strategy must leave gradients as they are where several processes average them (got {strategy.name}, "
            "which changes each process' own); train it with one process"
        )


def check_sharded(strategy: Strategy, optimizer: str) -> None:
    """Refuses what would need whole tables, where entity tables are spread over processes."""
    if optimizer != "rowwise":
        raise ValueError(f"optimizer must be 'rowwise' for tables spread over processes (got {optimizer!r})")
    for term in strategy.terms:
        if getattr(term, "negatives", None) == "all":
            raise ValueError(f"negatives must be a number for tables spread over processes (got 'all' in {term})")


def check_whole(model: TKGModel, name: str, path: str | os.PathLike[str] | None) -> None:
    """Refuses to keep a model in a file of ours that no process has whole."""
    if path is not None and is_sharded(model):
        raise ValueError(
            f"{name} must be None for a model whose tables are spread over processes (got '{path}'); "
            "torch.distributed.checkpoint saves its state_dict()"
        )
