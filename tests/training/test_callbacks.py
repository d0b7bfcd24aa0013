from typing import Any

import pytest
from runs import comparable, run, small, small_graph

from tkg_incremental import IncrementalTrainer
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.training import Callback, ProgressBar, StepLearner


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return small_graph()


class Witness(Callback):
    """Keeps all events."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        self.seen.append(f"step_begin {learner.time}")

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        self.seen.append(f"epoch {learner.epoch} {sorted(record)}")

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        self.seen.append(f"step_end {record and record['time']}")

    def on_end(self, trainer: IncrementalTrainer) -> None:
        self.seen.append("end")


def test_events(dataset: SyntheticTKG) -> None:
    witness = Witness()
    run(dataset, small("ft"), callbacks=[witness])
    epochs = [f"epoch {epoch} ['CE', 'val C@10']" for epoch in (1, 2)]
    steps = [event for time in (7, 8, 9) for event in (f"step_begin {time}", *epochs, f"step_end {time}")]
    assert witness.seen == ["step_begin 7", *epochs, "step_end None", *steps, "end"]


def test_callbacks_change_nothing(dataset: SyntheticTKG, capsys: pytest.CaptureFixture[str]) -> None:
    watched, alone = run(dataset, small("ft"), callbacks=[ProgressBar(), Callback()]), run(dataset, small("ft"))
    assert comparable(watched.result) == comparable(alone.result)
    assert capsys.readouterr().out == ""


def test_progress_bars(dataset: SyntheticTKG, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bar of steps, one of epochs for each step and for the base model; all are closed."""
    bars: list[Any] = []

    class Bar:
        def __init__(self, total: int, initial: int, desc: str, **options: Any) -> None:
            self.total, self.count, self.desc, self.is_open, self.shown = total, initial, desc, True, dict[str, str]()
            bars.append(self)

        def set_postfix(self, values: dict[str, str], refresh: bool) -> None:
            self.shown = values

        def update(self) -> None:
            self.count += 1

        def close(self) -> None:
            self.is_open = False

    monkeypatch.setattr("tkg_incremental.training.callbacks.progress_bar", Bar)
    run(dataset, small("ft"), callbacks=[ProgressBar()])
    assert [bar.desc for bar in bars] == ["base model, up to 7", "steps", "7", "8", "9"]
    assert [(bar.count, bar.total) for bar in bars] == [(2, 2), (3, 3), (2, 2), (2, 2), (2, 2)]
    assert set(bars[0].shown) == {"CE", "val C@10"}
    assert set(bars[1].shown) >= {"C@10", "A@10"}
    assert not any(bar.is_open for bar in bars)
