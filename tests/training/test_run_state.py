"""What identifies a run, and base models shared between runs."""

from pathlib import Path
from typing import Any

import pytest
import torch
from runs import comparable, run, same, settings_for, small, small_graph, trainer_for, weights

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import HyTE
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified
from tkg_incremental.strategies import DeletedFacts, FBFuture, Strategy, View
from tkg_incremental.training import Callback, RunFolderError, StepLearner
from tkg_incremental.training.run_state import (
    base_fingerprint,
    capture,
    check_fingerprint,
    load_base,
    restore,
    run_fingerprint,
    save_base,
)


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return small_graph()


class NoEpochs(Callback):
    """Fails if an epoch is learnt."""

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        raise AssertionError("the base model was there already")


def test_ended_facts_in_fingerprints(dataset: SyntheticTKG) -> None:
    with_, without = (trainer_for(dataset, small("ft")) for _ in range(2))
    with_.evaluator.exclude_ended = True
    # The base model is validated in the same way as the steps.
    for fingerprint, names in ((base_fingerprint, {"base"}), (run_fingerprint, {"base", "evaluator"})):
        found, other = fingerprint(with_), fingerprint(without)
        assert {name for name in found if found[name] != other[name]} == names


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
    # A run that loaded its base model equals the run that trained it.
    whole = run(dataset, small("tie"))
    assert comparable(whole.result) == comparable(second.fit())
    assert same(weights(whole.model), weights(second.model))


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"settings": settings_for(base={"seed": 1})}, "base_seed"),
        ({"kind": HyTE}, "model"),
        ({"strategy": FBFuture()}, "base_last"),
        ({"settings": settings_for(base={"learning": LearningSettings(epochs=1)})}, "base_learning"),
        ({"settings": settings_for(base={"negatives": 7})}, "base"),
        ({"settings": settings_for(base={"shared": True})}, "base"),
        ({"settings": settings_for(base={"candidates": "last"})}, "base"),
        ({"settings": settings_for(base={"visits": 2})}, "base"),
    ],
    ids=str,
)
def test_a_base_model_of_another_run(dataset: SyntheticTKG, tmp_path: Path, options: dict[str, Any], key: str) -> None:
    trainer_for(dataset, small("ft")).pretrain(base=tmp_path / "base.pt")
    other = trainer_for(dataset, **{"strategy": small("ft"), **options})
    with pytest.raises(RunFolderError, match=rf"the base model .* belongs to another run: its {key} is"):
        other.pretrain(base=tmp_path / "base.pt")


def test_seeds_share_a_base_model(dataset: SyntheticTKG, tmp_path: Path) -> None:
    settings = settings_for(base={"seed": 5})
    first, second = (trainer_for(dataset, small("ft"), seed=seed, settings=settings) for seed in (0, 1))
    shared = weights(first.pretrain(base=tmp_path / "base.pt"))
    assert same(shared, weights(second.pretrain(base=tmp_path / "base.pt")))
    first.fit()
    second.fit()
    assert not same(weights(first.model), weights(second.model))


def test_base_files(dataset: SyntheticTKG, tmp_path: Path) -> None:
    trainer = trainer_for(dataset, small("ft"))
    path = tmp_path / "base.pt"
    save_base(trainer, path)
    before, about = weights(trainer.model), load_verified(path)["about"]
    trainer.model.tables()["entity_vectors"].data.zero_()
    load_base(trainer, path)
    assert same(before, weights(trainer.model))
    save_verified({"about": about}, path)
    with pytest.raises(CorruptFileError, match="it is no base model"):
        load_base(trainer, path)
    save_verified({"about": about, "weights": {}}, path)
    with pytest.raises(RunFolderError, match="does not fit this model"):
        load_base(trainer, path)


def test_fingerprints(dataset: SyntheticTKG) -> None:
    one, same_one = (run_fingerprint(trainer_for(dataset, small("tie"))) for _ in range(2))
    assert one == same_one
    assert base_fingerprint(trainer_for(dataset, small("ft"))).items() <= one.items()
    assert run_fingerprint(trainer_for(dataset, small("ft"))) != one
    huge = [run_fingerprint(trainer_for(dataset, small("tie"), seed=seed)) for seed in (2**32, 0)]
    assert huge[0] != huge[1] == one
    with pytest.raises(RunFolderError, match="the file does not say to which run it belongs"):
        check_fingerprint(None, one, "the file")
    with pytest.raises(RunFolderError, match="the file belongs to another run: its seed is 7, expected 0"):
        check_fingerprint({**one, "seed": 7}, one, "the file")
    check_fingerprint({**one, "more": 1}, one, "the file")


def test_terms_without_a_repr(dataset: SyntheticTKG) -> None:
    class Own(View):
        pass

    one, other = (run_fingerprint(trainer_for(dataset, Strategy([DeletedFacts(Own())]))) for _ in range(2))
    assert one == other


@pytest.mark.parametrize("optimizer", ["rowwise", "published", "adagrad"])
@pytest.mark.parametrize("base_is_ready", [False, True])
def test_capture_and_restore(dataset: SyntheticTKG, tmp_path: Path, optimizer: str, base_is_ready: bool) -> None:
    """In the middle of the base model or of a step, through a file."""
    settings = settings_for(LearningSettings(epochs=3, batch_size=64, lr=0.01, optimizer=optimizer))

    class Stop(Callback):
        def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
            if trainer.base_is_ready == base_is_ready and learner.epoch == 2:
                save_verified(capture(trainer), tmp_path / "state.pt")
                raise KeyboardInterrupt

    stopped = trainer_for(dataset, small("tie"), settings=settings, callbacks=[Stop()])
    with pytest.raises(KeyboardInterrupt):
        stopped.pretrain(), stopped.fit()
    trainer = trainer_for(dataset, small("tie"), settings=settings)
    restore(trainer, load_verified(tmp_path / "state.pt"))
    assert trainer.active is not None
    assert trainer.active.epoch == 2
    trainer.pretrain()
    trainer.fit()
    whole = run(dataset, small("tie"), settings=settings)
    assert comparable(trainer.result) == comparable(whole.result)
    assert same(weights(trainer.model), weights(whole.model))
    assert torch.equal(trainer.generator.get_state(), whole.generator.get_state())
