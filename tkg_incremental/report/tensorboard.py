"""Logs a run for TensorBoard."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from tkg_incremental.training.callbacks import Callback

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from tkg_incremental.training.learner import StepLearner
    from tkg_incremental.training.trainer import IncrementalTrainer


class TensorBoardLogger(Callback):
    """Writes losses and validation of every epoch, and the metrics of every step, for TensorBoard.

    Epochs are counted through all incremental steps (and, apart, for the base model); metrics stand at the number of
    their step. A resumed run goes on where it stopped.

    Args:
        log_dir: Where to write; the folder ``tensorboard`` of the run by default.
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None) -> None:
        self.log_dir = log_dir
        self._writer: SummaryWriter | None = None

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        if self._writer is None:
            self._writer = self._open(trainer)

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        if trainer.base_is_ready:
            self._write("epoch", record, len(trainer.result.history) + learner.epoch)
        else:
            self._write("base", record, learner.epoch)

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        if record is not None:
            numbers = {name: value for name, value in record.items() if name not in ("time", "label")}
            self._write("step", numbers, record["time"])
            if self._writer is not None:
                self._writer.flush()

    def on_end(self, trainer: IncrementalTrainer) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, trainer: IncrementalTrainer) -> SummaryWriter:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("logging needs tensorboard: pip install 'tkg-incremental[tensorboard]'") from error
        folder = self.log_dir
        if folder is None:
            if trainer.folder is None:
                raise ValueError("log_dir must be given for a run without a run_dir (got None)")
            folder = trainer.folder / "tensorboard"
        return SummaryWriter(os.fspath(folder))

    def _write(self, group: str, numbers: dict[str, Any], at: int) -> None:
        if self._writer is None:
            return
        for name, value in numbers.items():
            if math.isfinite(value):
                # "@" and blanks are not allowed in tags, and would be replaced with a warning.
                self._writer.add_scalar(f"{group}/{name.replace('@', '_at_').replace(' ', '_')}", value, at)

    def __repr__(self) -> str:
        return f"TensorBoardLogger(log_dir={self.log_dir!r})"
