"""The state of a run: what identifies it, its checkpoints, and base models shared between runs."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Any

from torch import Tensor

import tkg_incremental
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified
from tkg_incremental.training.result import Result
from tkg_incremental.training.run_folder import RunFolderError

if TYPE_CHECKING:
    from tkg_incremental.training.trainer import IncrementalTrainer

# Increased with every change of the contents of a checkpoint.
FORMAT = 5


def base_fingerprint(trainer: IncrementalTrainer) -> dict[str, Any]:
    """What two runs must share to share a base model."""
    settings = trainer.settings
    # Base models from before this option were validated without it.
    excluded = ("exclude_ended",) if trainer.evaluator.exclude_ended else ()
    base = (settings.base.negatives, settings.base.shared, settings.base.candidates, settings.base.visits, *excluded)
    return {
        "dataset": trainer.result.dataset,
        "variant": trainer.variant,
        "facts": _digest(trainer.timeline.observed.facts),
        "model": trainer.result.model,
        "options": dict(trainer.model.options),
        "base_seed": trainer.base_seed,
        "base_learning": repr(settings.base_learning),
        "base": repr(base),
        "base_last": trainer.base_last,
    }


def run_fingerprint(trainer: IncrementalTrainer) -> dict[str, Any]:
    """What a run must share with a checkpoint to continue it."""
    return {
        "format": FORMAT,
        "version": tkg_incremental.__version__,
        "seed": trainer.seed,
        **base_fingerprint(trainer),
        "sizes": dict(trainer.model.sizes),
        "held_out": [_digest(split.facts) for split in (trainer.timeline.val, trainer.timeline.test)],
        "strategy": trainer.strategy.name,
        # Terms and views of users may have no `__repr__`: then only their addresses would differ.
        "terms": re.sub(r" at 0x[0-9a-fA-F]+", "", repr(trainer.strategy)),
        "validation_metric": trainer.strategy.validation_metric,
        "learning": repr(trainer.settings.learning),
        "negative_pool": trainer.settings.negative_pool,
        "new_entities": trainer.settings.new_entities,
        "candidates": trainer.settings.candidates,
        "evaluator": trainer.evaluator.options,
    }


def check_fingerprint(found: Any, wanted: dict[str, Any], what: str) -> None:
    """Raises an error that names the first difference.

    Args:
        found: The fingerprint in a file.
        wanted: The fingerprint of the run.
        what: What the file is.
    """
    if not isinstance(found, dict):
        raise RunFolderError(f"{what} does not say to which run it belongs")
    for key, value in wanted.items():
        if found.get(key) != value:
            raise RunFolderError(f"{what} belongs to another run: its {key} is {found.get(key)!r}, expected {value!r}")


def capture(trainer: IncrementalTrainer) -> dict[str, Any]:
    """Everything that changes during a run."""
    active = None
    if trainer.active is not None:
        active = {"time": trainer.active.time, "learner": trainer.active.state_dict()}
    return {
        "base_is_ready": trainer.base_is_ready,
        "weights": trainer.model.state_dict(),
        "generator": trainer.generator.get_state(),
        "result": trainer.result.to_dict(),
        "active": active,
    }


def restore(trainer: IncrementalTrainer, state: dict[str, Any]) -> None:
    """Puts a trainer of the same run into a captured state."""
    trainer.model.load_state_dict(state["weights"])
    trainer.base_is_ready = state["base_is_ready"]
    trainer.result = Result.from_dict(state["result"])
    trainer.active = None
    active = state["active"]
    if active is not None:
        learner = trainer.learner(active["time"]) if trainer.base_is_ready else trainer.base_learner()
        learner.load_state_dict(active["learner"])
        trainer.active = learner
    # Last, because making the learner drew from the generator. The state of a generator depends on the kind of device,
    # so a run cannot be moved to another kind: it would not give the same bits.
    trainer.generator.set_state(state["generator"].cpu())


def save_base(trainer: IncrementalTrainer, path: str | os.PathLike[str]) -> None:
    """Writes the base model of a trainer, atomically, so that other runs can share it."""
    save_verified({"about": base_fingerprint(trainer), "weights": trainer.model.state_dict()}, path)


def load_base(trainer: IncrementalTrainer, path: str | os.PathLike[str]) -> None:
    """Loads a shared base model on all processes. One of another fingerprint is refused."""
    device = trainer.model.device

    def read() -> dict[str, Any]:
        state = load_verified(path, device)
        if not isinstance(state, dict) or not state.keys() >= {"about", "weights"}:
            raise CorruptFileError(path, "it is no base model")
        check_fingerprint(state["about"], base_fingerprint(trainer), f"the base model '{path}'")
        return state

    state = trainer.communicator.load(read, device)
    try:
        trainer.model.load_state_dict(state["weights"])
    except RuntimeError as error:
        raise RunFolderError(f"the base model '{path}' does not fit this model: {error}") from error


def _digest(facts: Tensor) -> str:
    return hashlib.blake2b(facts.cpu().numpy().tobytes(), digest_size=8).hexdigest()
