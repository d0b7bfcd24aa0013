"""The state of a run as a dictionary, and back, to the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tkg_incremental.training.result import Result

if TYPE_CHECKING:
    from tkg_incremental.training.trainer import IncrementalTrainer


def capture(trainer: IncrementalTrainer) -> dict[str, Any]:
    """All that changes in the course of a run."""
    active = None
    if trainer.active is not None:
        active = {"time": trainer.active.step.snapshot.time, "learner": trainer.active.state_dict()}
    return {
        "base_is_ready": trainer.base_is_ready,
        "weights": trainer.model.state_dict(),
        "generator": trainer.generator.get_state(),
        "result": trainer.result.to_dict(),
        "active": active,
    }


def restore(trainer: IncrementalTrainer, state: dict[str, Any]) -> None:
    """Puts a trainer of the same run into a state that was captured."""
    trainer.model.load_state_dict(state["weights"])
    trainer.base_is_ready = state["base_is_ready"]
    trainer.result = Result.from_dict(state["result"])
    trainer.active = None  # what was under way when this trainer was interrupted
    active = state["active"]
    if active is not None:
        learner = trainer.learner(active["time"]) if trainer.base_is_ready else trainer.base_learner()
        learner.load_state_dict(active["learner"])
        trainer.active = learner
    # Last: making the learner above drew from the generator. A device has a state of its own kind, so a run that is
    # moved to another kind of device is refused here; it could not end with the same bits.
    trainer.generator.set_state(state["generator"].cpu())
