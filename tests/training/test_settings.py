import re
from typing import Any

import pytest
import torch

from tkg_incremental.strategies import N3, TemporalSmoothness
from tkg_incremental.training import BaseSettings, LearningSettings, TrainerSettings


def test_defaults() -> None:
    learning = LearningSettings()
    assert (learning.epochs, learning.patience, learning.batch_size, learning.lr) == (100, 20, 2048, 1e-3)
    assert (learning.optimizer, learning.max_norm, learning.weight_decay) == ("rowwise", 1.0, None)
    settings = TrainerSettings()
    assert settings.base_learning is settings.learning
    assert (settings.negative_pool, settings.new_entities) == (5000, "warm_up")
    own = LearningSettings(epochs=3)
    assert TrainerSettings(base=BaseSettings(own)).base_learning is own


@pytest.mark.parametrize("name", ["epochs", "patience", "batch_size", "validate_every"])
def test_numbers_of_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{name} must be at least 1 (got 0)")):
        LearningSettings(**{name: 0})


@pytest.mark.parametrize("name", ["n3", "smoothness", "weight_decay"])
def test_weights_must_not_be_negative(name: str) -> None:
    for weight in (-0.1, float("nan")):
        with pytest.raises(ValueError, match=re.escape(f"{name} must be at least 0 (got {weight})")):
            LearningSettings(**{name: weight})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "sgd"}, "optimizer must be one of rowwise, published, adagrad (got 'sgd')"),
        ({"lr": 0.0}, "lr must be above 0 (got 0.0)"),
        ({"lr": -1.0}, "lr must be above 0 (got -1.0)"),
        ({"lr": float("nan")}, "lr must be above 0 (got nan)"),
        ({"lr": float("inf")}, "lr must be above 0 (got inf)"),
        ({"max_norm": 0.0}, "max_norm must be None or above 0 (got 0.0)"),
        ({"autocast": "half"}, "autocast must be None or one of bf16, fp16 (got 'half')"),
    ],
)
def test_learning_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        LearningSettings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"negatives": 0}, "negatives must be 'all' or at least 1 (got 0)"),
        ({"candidates": "first"}, "candidates must be 'own' or 'last' (got 'first')"),
        ({"visits": 0}, "visits must be at least 1 (got 0)"),
    ],
)
def test_base_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        BaseSettings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1 (got 0)"),
        ({"negative_pool": 0}, "negative_pool must be None or at least 1 (got 0)"),
        ({"candidates": "first"}, "candidates must be 'own' or 'last' (got 'first')"),
        ({"new_entities": "old"}, "new_entities must be one of warm_up, initialize, keep (got 'old')"),
    ],
)
def test_trainer_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TrainerSettings(**options)


def test_regularizers() -> None:
    assert LearningSettings().regularizers() == []
    assert LearningSettings(n3=0.1, smoothness=0.2).regularizers() == [N3(0.1), TemporalSmoothness(0.2)]


@pytest.mark.parametrize(("autocast", "dtype"), [(None, torch.float), ("bf16", torch.bfloat16)])
def test_precision(autocast: str | None, dtype: torch.dtype) -> None:
    with LearningSettings(autocast=autocast).precision(torch.device("cpu")):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


def test_the_learning_rate_cools_down() -> None:
    settings = LearningSettings(epochs=5, lr=0.3, cooldown=2)
    assert [settings.lr_at(epoch) for epoch in range(5)] == pytest.approx([0.3, 0.3, 0.3, 0.2, 0.1])
    assert [LearningSettings(epochs=2, lr=0.3).lr_at(epoch) for epoch in range(2)] == [0.3, 0.3]
    with pytest.raises(ValueError, match=r"cooldown must lie in 0 … 5, the epochs \(got 6\)"):
        LearningSettings(epochs=5, cooldown=6)
