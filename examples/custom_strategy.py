"""A strategy of your own in ten lines: replay the facts of entities that have just changed."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental import IncrementalTrainer, LearningSettings, TrainerSettings
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.models import DE
from tkg_incremental.strategies import CrossEntropy, DeletedFacts, Strategy, TemporalRegularization, View


class NeighboursOfChange(View):
    """Quads of the last ten steps about entities that have an added fact at the step."""

    def select(self, timeline: Timeline, time: int, generator: torch.Generator) -> Tensor:
        past = timeline.observed.between(time - 10, time - 1).quads()
        changed = timeline.observed.added(time)[:, [0, 2]]
        return past[torch.isin(past[:, 0], changed) | torch.isin(past[:, 2], changed)]


replay = CrossEntropy(NeighboursOfChange(), negatives=50, name="RCE")
local_replay = Strategy([CrossEntropy(), TemporalRegularization(), DeletedFacts(), replay], "LocalReplay")


if __name__ == "__main__":
    dataset = WorldLeaders()
    settings = TrainerSettings(LearningSettings(epochs=10, patience=5, lr=5e-3))
    trainer = IncrementalTrainer(DE.from_dataset(dataset, hidden_channels=64), dataset, local_replay, settings=settings)
    trainer.pretrain()
    print(trainer.fit())
