from pathlib import Path
from typing import Any

import pytest
import torch
from runs import comparable, run, same, small, small_graph, trainer_for, weights
from tkg_incremental.sampling import NegativeSampler
from torch import Tensor

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE, HyTE
from tkg_incremental.strategies import FBFuture, Strategy
from tkg_incremental.training import Callback, RunFolderError, StepLearner


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return small_graph()


class NoEpochs(Callback):
    """Fails where an epoch is learnt."""

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        raise AssertionError("the base model was there already")


def test_a_base_model_is_shared(dataset: SyntheticTKG, tmp_path: Path) -> None:
    base = tmp_path / "base.pt"
    first = trainer_for(dataset, small("ft"))
    first.pretrain(base=base)
    assert base.exists()
    second = trainer_for(dataset, small("tie"))
    second.callbacks = [NoEpochs()]
    second.pretrain(base=base)
    assert same(weights(first.model), weights(second.model))
    second.callbacks = []
    # A run that took its base model from the file is the run that learnt it.
    whole, shared = run(dataset, small("tie")), second
    assert comparable(whole.result) == comparable(shared.fit())
    assert same(weights(whole.model), weights(shared.model))


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"base_seed": 1}, "base_seed"),
        ({"kind": HyTE}, "model"),
        ({"strategy": FBFuture()}, "sees_future"),
        ({"base_settings": LearningSettings(epochs=1)}, "base"),
        ({"base_negatives": 7}, "base_negatives"),
        ({"base_candidates": "last"}, "base_candidates"),
    ],
)
def test_a_base_model_of_another_run(dataset: SyntheticTKG, tmp_path: Path, options: dict[str, Any], key: str) -> None:
    trainer_for(dataset, small("ft")).pretrain(base=tmp_path / "base.pt")
    other = trainer_for(dataset, **{"strategy": small("ft"), **options})
    with pytest.raises(RunFolderError, match=rf"the base model .* is of another run: its {key} is"):
        other.pretrain(base=tmp_path / "base.pt")


def test_seeds_share_a_base_model(dataset: SyntheticTKG, tmp_path: Path) -> None:
    first, second = (trainer_for(dataset, small("ft"), seed=seed, base_seed=5) for seed in (0, 1))
    shared = weights(first.pretrain(base=tmp_path / "base.pt"))
    assert same(shared, weights(second.pretrain(base=tmp_path / "base.pt")))
    first.fit(), second.fit()
    assert not same(weights(first.model), weights(second.model))


class Watched(Callback):
    """Checks what early stopping is told."""

    def __init__(self, line: Timeline) -> None:
        self.validator, self.epochs = Evaluator(line, "val"), 0

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        assert record["val C@10"] == self.validator.hits(trainer.model, 0, 7)
        self.epochs += 1


@pytest.mark.parametrize("candidates", ["own", "last"])
def test_what_the_base_model_is_held_against(
    dataset: SyntheticTKG, monkeypatch: pytest.MonkeyPatch, candidates: str
) -> None:
    drawn: list[tuple[Tensor, Tensor]] = []
    draw = NegativeSampler.__call__

    def keep(self: NegativeSampler, rows: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        columns, there = draw(self, rows, *args, **kwargs)
        drawn.append((rows[:, 3], columns))
        return columns, there

    monkeypatch.setattr(NegativeSampler, "__call__", keep)
    trainer = trainer_for(dataset, small("ft"), base_candidates=candidates, base_negatives=50)
    line = trainer.timeline if candidates == "own" else trainer.timeline.knowing(7)
    watched = Watched(line)
    trainer.callbacks = [watched]
    trainer.pretrain()
    assert watched.epochs > 0
    for step in range(8):
        columns = torch.cat([columns[time == step].flatten() for time, columns in drawn])
        assert int(columns.max()) < int(line.num_known[step])
        beyond = columns >= trainer.timeline.num_known[step]
        assert bool(beyond.any()) == (int(line.num_known[step]) > int(trainer.timeline.num_known[step]))
    with pytest.raises(ValueError, match=r"base_candidates must be 'own' or 'last' \(got 'first'\)"):
        trainer_for(dataset, small("ft"), base_candidates="first")


@pytest.mark.parametrize("how", ["settled", "fresh", "kept"])
def test_how_new_entities_start(dataset: SyntheticTKG, how: str) -> None:
    trainer = trainer_for(dataset, Strategy([], "nothing"), new_entities=how)
    before = weights(trainer.pretrain())["encoder.entity_vectors"].clone()
    trainer.fit()
    changed = (weights(trainer.model)["encoder.entity_vectors"] != before).any(1)
    line = dataset.timeline
    late = line.order[int(line.num_known[7]) : int(line.num_known[-1])]
    assert len(late) > 0
    assert torch.equal(changed.nonzero().flatten(), late.sort().values[: len(late) * (how != "kept")])
    with pytest.raises(ValueError, match=r"new_entities must be one of settled, fresh, kept \(got 'old'\)"):
        trainer_for(dataset, small("ft"), new_entities="old")


def test_the_base_model_learns_from_the_past_alone(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, small("ft"))
    before = weights(trainer.model)["encoder.entity_vectors"]
    trainer.pretrain()
    moved = (weights(trainer.model)["encoder.entity_vectors"] != before).any(1)
    known = torch.zeros(24, dtype=torch.bool).index_fill_(0, dataset.timeline.known_entities(7), True)
    assert torch.equal(moved, known)
    assert not known.all()


def test_full_batch_with_the_future(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, FBFuture())
    trainer.pretrain()
    learnt = weights(trainer.model)
    result = trainer.fit()
    assert same(learnt, weights(trainer.model))  # nothing is learnt, nor drawn anew, step by step
    assert [step["epochs"] for step in result.steps] == [0, 0, 0]
    fresh = weights(DE.from_dataset(dataset, hidden_channels=4))
    late = dataset.timeline.order[int(dataset.timeline.num_known[7]) :]
    assert (learnt["encoder.entity_vectors"][late] != fresh["encoder.entity_vectors"][late]).any(1).all()


def test_steps_before_a_base_model(dataset: SyntheticTKG) -> None:
    with pytest.raises(RuntimeError, match=r"call pretrain\(\) before fit\(\)"):
        trainer_for(dataset, small("ft")).fit()
