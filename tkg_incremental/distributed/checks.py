"""Checks before a run: combinations that several processes do not support."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tkg_incremental.communicator import Communicator
from tkg_incremental.models.base import TKGModel
from tkg_incremental.strategies import Strategy

if TYPE_CHECKING:
    from tkg_incremental.training.settings import TrainerSettings


def check_distributed(
    model: TKGModel,
    strategy: Strategy,
    settings: TrainerSettings,
    communicator: Communicator,
    run_dir: str | os.PathLike[str] | None,
) -> None:
    """Raises an error for a combination that several processes or sharded tables do not support."""
    if communicator.size > 1 and type(strategy).backward is not Strategy.backward:
        raise ValueError(
            f"strategy must not change gradients if several processes average them (got {strategy.name}); "
            "train it with one process"
        )
    if not model.is_sharded:
        return
    if run_dir is not None:
        raise ValueError(
            f"run_dir must be None for a model with sharded tables (got '{run_dir}'); "
            "torch.distributed.checkpoint saves its state_dict()"
        )
    for learning in (settings.learning, settings.base_learning):
        if learning.optimizer == "published":
            raise ValueError("optimizer must be row-wise for sharded tables (got 'published')")
    terms = [(repr(term), getattr(term, "negatives", None)) for term in strategy.terms]
    for name, negatives in [*terms, ("the base model", settings.base.negatives)]:
        if negatives == "all":
            raise ValueError(f"negatives must be a number for sharded tables (got 'all' in {name})")
