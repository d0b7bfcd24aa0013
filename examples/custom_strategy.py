"""A strategy in ten lines: TIE that replays only facts about entities that have just changed."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental import IncrementalTrainer, LearningSettings, TrainerSettings
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.models import DE
from tkg_incremental.strategies import TIE, CrossEntropy, View


class NeighboursOfChange(View):
    """Quads of the last ten steps about entities that gained a fact at this step."""

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor:
        past, changed = timeline.observed.between(time - 10, time - 1).quads(), timeline.observed.added(time)[:, [0, 2]]
        return past[torch.isin(past[:, [0, 2]], changed).any(1)]


if __name__ == "__main__":
    dataset = WorldLeaders()
    strategy = TIE(replay=None) + [CrossEntropy(NeighboursOfChange(), negatives=50, name="RCE")]
    settings = TrainerSettings(LearningSettings(epochs=10, patience=5, lr=5e-3))
    trainer = IncrementalTrainer(DE.from_dataset(dataset, hidden_channels=64), dataset, strategy, settings=settings)
    trainer.pretrain()
    print(trainer.fit())
