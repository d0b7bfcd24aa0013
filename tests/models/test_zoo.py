import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE, ZOO, TKGModel, load_model, register_model, save_model
from tkg_incremental.registry import make_strategy
from tkg_incremental.training import BaseSettings, IncrementalTrainer, LearningSettings, TrainerSettings

QUADS = torch.tensor([(0, 0, 1, 0), (3, 1, 3, 2)])


@pytest.mark.parametrize("name", ZOO)
def test_seeds(name: str) -> None:
    first, same, other = (ZOO[name](5, 2, 3, 8, seed=seed).eval()(QUADS) for seed in (1, 1, 2))  # type: ignore[call-arg]
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", ZOO)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = ZOO[name](5, 2, 3, 8, seed=1).eval()  # type: ignore[call-arg]
    assert type(model).__name__ == name
    save_model(model, tmp_path / "model.pt")
    loaded = load_model(tmp_path / "model.pt")
    assert type(loaded) is type(model)
    assert loaded.options == model.options
    assert torch.equal(loaded(QUADS), model(QUADS))


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return SyntheticTKG(num_entities=24, num_relations=2, num_steps=6, facts_per_step=30)


@pytest.mark.parametrize(
    ("strategy", "optimizer"),
    [("ft", "rowwise"), ("tie", "published"), ("agem", "rowwise"), ("supersede", "adagrad")],
)
@pytest.mark.parametrize("name", ZOO)
def test_every_model_learns_a_step(dataset: SyntheticTKG, name: str, strategy: str, optimizer: str) -> None:
    """With reciprocal relations, N3 and smoothness."""
    timeline = dataset.timeline
    sizes = (timeline.num_entities, timeline.num_relations, timeline.num_steps)
    # The frequency of years is not learnt within the first one.
    options: dict[str, Any] = {"first_date": "1999-12-30"} if name == "CalendarDE" else {}
    model = ZOO[name](*sizes, hidden_channels=8, reciprocal=True, **options)  # type: ignore[call-arg]
    chosen: dict[str, Any] = {} if strategy == "agem" else {"negatives": 5}
    learning = LearningSettings(epochs=1, batch_size=64, lr=0.01, optimizer=optimizer, n3=0.01, smoothness=0.01)
    settings = TrainerSettings(learning=learning, base=BaseSettings(learning=learning, negatives=5))
    trainer = IncrementalTrainer(
        model, dataset, make_strategy(strategy, **chosen), settings=settings, device="cpu", callbacks=[]
    )
    trainer.pretrain()
    before = {table: rows.detach().clone() for table, rows in model.tables().items()}
    result = trainer.fit(until=timeline.base_step)
    for table, rows in model.tables().items():
        assert rows.isfinite().all(), table
        assert not torch.equal(rows, before[table]), table
    assert math.isfinite(result.steps[-1]["C@10"])


def test_a_class_of_ones_own(tmp_path: Path) -> None:
    class Own(DE):
        pass

    try:
        assert register_model(Own) is Own
        assert register_model(Own) is Own  # again
        model = Own(5, 2, 3, 8)
        save_model(model, tmp_path / "model.pt")
        loaded = load_model(tmp_path / "model.pt")
        assert type(loaded) is Own
        assert torch.equal(loaded(QUADS), model(QUADS))
    finally:
        ZOO.pop("Own", None)


def test_names_are_unique() -> None:
    taken = type("DE", (TKGModel,), {})
    with pytest.raises(ValueError, match=r"model must have a name that is not in the zoo \(got 'DE'\)"):
        register_model(taken)
    assert ZOO["DE"] is DE
