"""What a run is, in a few lines: by these a checkpoint knows the run it belongs to."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from torch import Tensor

import tkg_incremental
from tkg_incremental.training.run_folder import RunFolderError

if TYPE_CHECKING:
    from tkg_incremental.training.trainer import IncrementalTrainer

# Goes up with every change of what a checkpoint holds.
FORMAT = 3


def base_fingerprint(trainer: IncrementalTrainer, variant: str) -> dict[str, Any]:
    """What two runs must share to share a base model.

    Args:
        trainer: The run.
        variant: The options the dataset was built with.
    """
    return {
        "dataset": trainer.result.dataset,
        "variant": variant,
        "facts": _digest(trainer.timeline.observed.rows),
        "model": trainer.result.model,
        "options": dict(trainer.model.options),
        "base_seed": trainer.base_seed,
        "base": repr(trainer.base_settings),
        "base_autocast": trainer.base_settings.autocast,
        "base_negatives": trainer.base_negatives,
        "base_candidates": trainer.base_candidates,
        "sees_future": trainer.strategy.sees_future,
    }


def run_fingerprint(trainer: IncrementalTrainer, variant: str) -> dict[str, Any]:
    """What a run must share with a checkpoint to continue it.

    Args:
        trainer: The run.
        variant: The options the dataset was built with.
    """
    evaluator = trainer.evaluator
    return {
        "format": FORMAT,
        "version": tkg_incremental.__version__,
        "seed": trainer.seed,
        **base_fingerprint(trainer, variant),
        "sizes": dict(trainer.model.encoder.sizes),
        "held_out": [_digest(split.rows) for split in (trainer.timeline.val, trainer.timeline.test)],
        "strategy": trainer.strategy.name,
        # Terms and views of a user's own need no `__repr__`: then only their address would differ.
        "terms": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(trainer.strategy)),
        "watches": trainer.strategy.watches,
        "settings": repr(trainer.settings),
        "negative_pool": trainer.negative_pool,
        "new_entities": trainer.new_entities,
        "autocast": trainer.settings.autocast,
        "evaluator": {name: getattr(evaluator, name) for name in ("split", "window", "per_query", "average_from")},
    }


def refuse_other(found: Any, wanted: dict[str, Any], what: str) -> None:
    """Raises an error that names what differs.

    Args:
        found: The fingerprint of a file.
        wanted: That of the run.
        what: What the file is.
    """
    if not isinstance(found, dict):
        raise RunFolderError(f"{what} does not say of which run it is")
    for key, value in wanted.items():
        if found.get(key) != value:
            raise RunFolderError(f"{what} is of another run: its {key} is {found.get(key)!r}, expected {value!r}")


def _digest(rows: Tensor) -> str:
    return hashlib.blake2b(rows.cpu().numpy().tobytes(), digest_size=8).hexdigest()
