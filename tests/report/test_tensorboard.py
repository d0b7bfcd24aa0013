from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tkg_incremental.report import TensorBoardLogger


def test_losses_by_epoch_and_metrics_by_step(start: Callable[..., Any], tmp_path: Path) -> None:
    trainer = start(tmp_path / "run", TensorBoardLogger())
    trainer.pretrain()
    result = trainer.fit()
    log = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    log.Reload()
    metrics = log.Scalars("step/C_at_10")
    assert [event.step for event in metrics] == [step["time"] for step in result.steps]
    assert [event.value for event in metrics] == pytest.approx([step["C@10"] for step in result.steps])
    losses = log.Scalars("epoch/CE")
    assert [event.step for event in losses] == list(range(1, len(result.history) + 1))
    assert [event.value for event in losses] == pytest.approx([record["CE"] for record in result.history])
    assert len(log.Scalars("base/CE")) == 3


def test_a_run_without_a_folder_needs_a_place(start: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="log_dir must be given"):
        start(None, TensorBoardLogger()).pretrain()
