"""Whole runs that take a second, and their comparison."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets import SyntheticTKG, TKGDataset
from tkg_incremental.models import DE, TKGModel
from tkg_incremental.strategies import AGEM, FB, FT, TIE, TR, FBFuture, ReplayOptions, Strategy, Supersede
from tkg_incremental.training import BaseSettings, Result, TrainerSettings

QUICK = LearningSettings(epochs=2, batch_size=64, lr=0.01)
STRATEGIES = ("ft", "ft all", "tr", "tie", "fb", "fb_future", "agem", "supersede")


def small_graph() -> SyntheticTKG:
    """Ten steps, of which 7 to 9 are learnt one after the other."""
    return SyntheticTKG(num_entities=24, num_relations=2, num_steps=10, facts_per_step=30, added_per_step=6)


def small(name: str) -> Strategy:
    return {
        "ft": lambda: FT(negatives=5),
        "ft all": lambda: FT("all", negatives="all"),
        "tr": lambda: TR(negatives=5, shared=True),
        "tie": lambda: TIE(negatives=5, replay=ReplayOptions("inverse", size=20, negatives=3), window=3),
        "fb": lambda: FB(window=2, negatives=5),
        "fb_future": FBFuture,
        "agem": lambda: AGEM(window=3, replay=ReplayOptions("boundary", size=20, window="all")),
        "supersede": lambda: Supersede(5, 3, replay=ReplayOptions(size=20, negatives=3), window=3, unlikelihood=1.0),
    }[name]()


def settings_for(
    learning: LearningSettings = QUICK, base: dict[str, Any] | None = None, **options: Any
) -> TrainerSettings:
    """Settings of a run that takes a second; without a warm-up of new entities, which would be half of it.

    Args:
        learning: How steps are learnt.
        base: Options of :class:`BaseSettings`.
        **options: Options of :class:`TrainerSettings`.
    """
    return TrainerSettings(learning, BaseSettings(**(base or {})), **{"new_entities": "initialize", **options})


def nameless(model: TKGModel) -> TKGModel:
    """Without names there are no answers whose probabilities are calibrated, which would be most of a short run."""
    model.catalog = None
    return model


def trainer_for(
    dataset: TKGDataset, strategy: Strategy, kind: Any = DE, seed: int = 0, **options: Any
) -> IncrementalTrainer:
    model = nameless(kind.from_dataset(dataset, hidden_channels=4, seed=seed))
    options = {"settings": settings_for(), "callbacks": [], "device": "cpu", **options}
    return IncrementalTrainer(model, dataset, strategy, seed=seed, **options)


def run(*args: Any, **options: Any) -> IncrementalTrainer:
    trainer = trainer_for(*args, **options)
    trainer.pretrain()
    trainer.fit()
    return trainer


def weights(model: TKGModel) -> dict[str, Tensor]:
    return copy.deepcopy(model.state_dict())


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items())


def comparable(result: Result) -> str:
    """A result without its durations."""
    steps = [{k: v for k, v in step.items() if k != "epoch_seconds"} for step in result.steps]
    return repr([steps, result.history, result.alpha])
