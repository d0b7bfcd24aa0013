"""Products in 16 bits: other bits, but similar losses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from runs import nameless

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE, HyTE, TKGModel
from tkg_incremental.strategies import TIE, ReplayOptions
from tkg_incremental.training import TrainerSettings


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return SyntheticTKG(num_entities=60, num_relations=4, num_steps=6)


def train(dataset: SyntheticTKG, kind: type[TKGModel], **options: Any) -> tuple[IncrementalTrainer, dict[str, float]]:
    """A run with products of all three kinds: against all, against many samples of few, against few of many."""
    settings = LearningSettings(epochs=8, batch_size=64, lr=0.02, **options)
    strategy = TIE(negatives="all", replay=ReplayOptions(size=100, negatives=100))
    model = nameless(kind.from_dataset(dataset, hidden_channels=16))
    trainer = IncrementalTrainer(
        model, dataset, strategy, settings=TrainerSettings(settings), device="cpu", callbacks=[]
    )
    trainer.pretrain()
    last = trainer.fit().history[-1]
    return trainer, {name: last[name] for name in ("CE", "RCE", "del")}


@pytest.mark.parametrize("autocast", ["bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
@pytest.mark.parametrize("kind", [DE, HyTE])
def test_losses_fall_alike(dataset: SyntheticTKG, kind: type[TKGModel], optimizer: str, autocast: str) -> None:
    trainer, losses = train(dataset, kind, optimizer=optimizer)
    other, found = train(dataset, kind, optimizer=optimizer, autocast=autocast)
    assert found == pytest.approx(losses, rel=0.05, abs=0.02)
    assert other.result.summary["C@10"] == pytest.approx(trainer.result.summary["C@10"], abs=10)
    # It is active: products differ. Distances keep their bits, and scaling by a power of two is exact.
    weights, theirs = trainer.model.entity_vectors, other.model.entity_vectors
    assert torch.equal(weights, theirs) == (kind is HyTE)
    assert theirs.dtype == torch.float
