"""A strategy of your own in ten lines: replay only what touches the entities that have just changed."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.data import Snapshot
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.models import DE
from tkg_incremental.strategies import Drift, Forget, Link, Strategy, View


class NeighboursOfChange(View):
    """Facts of the last ten steps about entities that gained a fact at this one."""

    def rows(self, snapshot: Snapshot, generator: torch.Generator) -> Tensor:
        past, changed = snapshot.replay(window=10), snapshot.added[:, [0, 2]]
        return past[torch.isin(past[:, 0], changed) | torch.isin(past[:, 2], changed)]


local_replay = Strategy(
    [Link(), Drift(), Forget(), Link(NeighboursOfChange(), negatives=50, name="RCE")], "LocalReplay"
)


if __name__ == "__main__":
    dataset = WorldLeaders()
    settings = LearningSettings(epochs=10, patience=5, lr=5e-3)
    trainer = IncrementalTrainer(DE.from_dataset(dataset, hidden_channels=64), dataset, local_replay, settings=settings)
    trainer.pretrain()
    print(trainer.fit())
