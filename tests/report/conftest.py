"""One small real run, watched, for all tests of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tkg_incremental import IncrementalTrainer, LearningSettings, TrainerSettings
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE
from tkg_incremental.report import ChangeRecorder
from tkg_incremental.strategies import TIE
from tkg_incremental.training import Callback


@dataclass
class Run:
    folder: Path
    trainer: IncrementalTrainer
    recorder: ChangeRecorder


# Few entities and many deletions: questions with one answer at a time, whose answer changes.
DATASET = SyntheticTKG(
    num_entities=40, num_relations=3, num_steps=12, facts_per_step=40, added_per_step=15, num_clusters=8, test=0.5
)


def make_trainer(folder: Path | None, *watchers: Callback, overwrite: bool = False) -> IncrementalTrainer:
    return IncrementalTrainer(
        DE.from_dataset(DATASET, hidden_channels=16, seed=0),
        DATASET,
        TIE(),
        run_dir=folder,
        settings=TrainerSettings(LearningSettings(epochs=3, lr=5e-2, batch_size=256), checkpoint_every=1),
        callbacks=watchers,
        overwrite=overwrite,
        device="cpu",
    )


@pytest.fixture(scope="session")
def start() -> Callable[..., IncrementalTrainer]:
    return make_trainer


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, recorder = tmp_path_factory.mktemp("runs") / "run", ChangeRecorder()
    trainer = make_trainer(folder, recorder)
    trainer.pretrain()
    trainer.fit()
    return Run(folder, trainer, recorder)
