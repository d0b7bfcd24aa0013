"""Callbacks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tkg_incremental.progress import progress_bar

if TYPE_CHECKING:
    from tqdm import tqdm

    from tkg_incremental.training.learner import StepLearner
    from tkg_incremental.training.trainer import IncrementalTrainer


class Callback:
    """Base class of callbacks. They must not change the run."""

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        """Before the first epoch of a step (or of the base model)."""

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        """After an epoch, with its losses and its validation."""

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        """After a step, with its metrics (:obj:`None` after the base model)."""

    def on_end(self, trainer: IncrementalTrainer) -> None:
        """After the last step, or when the run is interrupted."""


class ProgressBar(Callback):
    """Progress bars of the steps and of the epochs of the current step, with current metrics."""

    def __init__(self) -> None:
        self._steps: tqdm[Any] | None = None
        self._epochs: tqdm[Any] | None = None

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        if self._steps is None and trainer.base_is_ready:
            total = trainer.timeline.num_steps - trainer.timeline.base_step
            self._steps = progress_bar(total=total, initial=len(trainer.result.steps), desc="steps")
        title = learner.label if trainer.base_is_ready else f"base model, up to {learner.label}"
        self._epochs = progress_bar(total=learner.settings.epochs, initial=learner.epoch, desc=title, leave=False)

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        if self._epochs is not None:
            self._epochs.set_postfix({name: f"{value:.3g}" for name, value in record.items()}, refresh=False)
            self._epochs.update()

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        if self._epochs is not None:
            self._epochs.close()
            self._epochs = None
        if self._steps is not None and record is not None:
            shown: dict[str, object] = {
                name: f"{record[name]:.1f}" for name in ("C@10", "A@10", "DF@10") if name in record
            }
            self._steps.set_postfix(shown, refresh=False)
            self._steps.update()

    def on_end(self, trainer: IncrementalTrainer) -> None:
        for bar in (self._epochs, self._steps):
            if bar is not None:
                bar.close()
        self._steps = self._epochs = None
