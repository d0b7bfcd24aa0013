"""Resuming: to the same bits, from any checkpoint, and of the same run only."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import CASES, Tiny, learning_for, make_trainer, same_bits, settings_for, write_mirror

import tkg_incremental
from tkg_incremental import IncrementalTrainer
from tkg_incremental.data.facts import FactTable
from tkg_incremental.datasets.download import MIRROR_VARIABLE
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified
from tkg_incremental.strategies import TIE, CrossEntropy, DeletedFacts, Strategy, View
from tkg_incremental.training import Callback, RunFolderError, StepLearner


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    folder = tmp_path_factory.mktemp("tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MIRROR_VARIABLE, str(write_mirror(folder / "mirror")))
        return Tiny(folder / "data")


class Keeper(Callback):
    """Copies every checkpoint away before it is pruned."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.places = folder, list[tuple[int, int]]()

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        self._keep(trainer)

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        self._keep(trainer)

    def _keep(self, trainer: IncrementalTrainer) -> None:
        assert trainer.folder is not None
        self.folder.mkdir(exist_ok=True)
        for path in trainer.folder.checkpoints:
            shutil.copy(path, self.folder / path.name)


def finish(trainer: IncrementalTrainer, base: Path | None = None) -> IncrementalTrainer:
    trainer.pretrain(base)
    trainer.fit()
    assert trainer.folder is not None
    trainer.folder.release()
    return trainer


@pytest.mark.parametrize("case", CASES)
def test_same_bits_from_every_checkpoint(dataset: Tiny, tmp_path: Path, case: str) -> None:
    kept = tmp_path / "kept"
    whole = finish(make_trainer(case, dataset, tmp_path / "whole", callbacks=[Keeper(kept)]))
    numbers = sorted(kept.glob("*.pt"))
    inside = 0
    # Every eighth: with the cases they cover first, middle and last epochs of the base model and of steps.
    for path in numbers[CASES.index(case) % 8 :: 8]:
        run_dir = tmp_path / path.stem
        (run_dir / "checkpoints").mkdir(parents=True)
        shutil.copy(path, run_dir / "checkpoints")
        inside += load_verified(path)["active"] is not None
        resumed = finish(make_trainer(case, dataset, run_dir).resume())
        assert same_bits(run_dir, tmp_path / "whole"), path.name
        assert torch.equal(resumed.generator.get_state(), whole.generator.get_state())
    assert inside


def test_the_interval_of_checkpoints_changes_nothing(dataset: Tiny, tmp_path: Path) -> None:
    for every in (1, 3):
        finish(make_trainer(CASES[0], dataset, tmp_path / str(every), checkpoint_every=every))
    assert same_bits(tmp_path / "1", tmp_path / "3")
    with pytest.raises(ValueError, match=r"checkpoint_every must be at least 1 \(got 0\)"):
        make_trainer(CASES[0], dataset, None, checkpoint_every=0)


def test_number_of_checkpoints(dataset: Tiny, tmp_path: Path) -> None:
    trainer = finish(make_trainer(CASES[0], dataset, tmp_path, settings_for(CASES[0], keep_checkpoints=3)))
    assert trainer.folder is not None
    assert len(trainer.folder.checkpoints) == 3


class Interrupt(Callback):
    """Ctrl-C in a notebook, at the given epoch of the run."""

    def __init__(self, after: int) -> None:
        self.left = after

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("base_is_ready", "epoch"), [(False, 3), (True, 1), (True, 3)])
def test_resuming_a_trainer_that_was_interrupted(
    dataset: Tiny, tmp_path: Path, base_is_ready: bool, epoch: int
) -> None:
    """The state of the checkpoint replaces that of the interrupted step."""

    class Once(Callback):
        done = False

        def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
            if not self.done and (trainer.base_is_ready, learner.epoch) == (base_is_ready, epoch):
                self.done = True
                raise KeyboardInterrupt

    finish(make_trainer(CASES[0], dataset, tmp_path / "whole", checkpoint_every=2))
    trainer = make_trainer(CASES[0], dataset, tmp_path / "run", checkpoint_every=2, callbacks=[Once()])
    with pytest.raises(KeyboardInterrupt):
        finish(trainer)
    finish(trainer.resume())
    assert same_bits(tmp_path / "run", tmp_path / "whole")


def test_a_base_model_that_was_finished_elsewhere(dataset: Tiny, tmp_path: Path) -> None:
    """A run is stopped inside its base model; meanwhile another run writes the file that both share."""
    base = tmp_path / "base.pt"
    trainer = make_trainer(CASES[0], dataset, tmp_path / "run", callbacks=[Interrupt(2)])
    with pytest.raises(KeyboardInterrupt):
        trainer.pretrain(base)
    assert trainer.folder is not None
    trainer.folder.release()
    finish(make_trainer(CASES[0], dataset, tmp_path / "other"), base)
    finish(make_trainer(CASES[0], dataset, tmp_path / "run").resume(), base)
    assert same_bits(tmp_path / "run", tmp_path / "other")


def test_a_finished_run_is_not_changed(dataset: Tiny, tmp_path: Path) -> None:
    finish(make_trainer(CASES[0], dataset, tmp_path / "run"))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    (tmp_path / "run" / "metrics.json").unlink()
    (tmp_path / "run" / "model.pt").unlink()
    finish(make_trainer(CASES[0], dataset, tmp_path / "run").resume())
    assert same_bits(tmp_path / "run", tmp_path / "copy")


# Refused ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(dataset: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base model and a checkpoint; to be copied."""
    folder = tmp_path_factory.mktemp("begun")
    trainer = make_trainer(CASES[0], dataset, folder / "run")
    trainer.pretrain(folder / "base.pt")
    assert trainer.folder is not None
    trainer.folder.release()
    return folder


def other_dataset(dataset: Tiny) -> Any:
    class Other(Tiny):
        pass

    return Other(dataset.root)


CASE, LEARNING = CASES[0], learning_for("rowwise")


def with_settings(data: Tiny, path: Path, base: dict[str, Any] | None = None, **options: Any) -> IncrementalTrainer:
    return make_trainer(CASE, data, path, settings_for(CASE, {"learning": LEARNING, **(base or {})}, **options))


def with_model(data: Tiny, path: Path, hidden_channels: int, strategy: Strategy) -> IncrementalTrainer:
    model = DE.from_dataset(data, hidden_channels=hidden_channels)
    return IncrementalTrainer(model, data, strategy, path, 3, "cpu", settings_for(CASE), callbacks=[])


DIFFERENT: dict[str, Callable[[Tiny, Path], IncrementalTrainer]] = {
    "dataset": lambda data, path: make_trainer(CASE, other_dataset(data), path),
    "variant": lambda data, path: make_trainer(CASE, Tiny(data.root, single_step_facts=True), path),
    "model": lambda data, path: make_trainer("HyTE rowwise", data, path, settings_for(CASE)),
    "options": lambda data, path: with_model(data, path, 16, TIE()),
    "seed": lambda data, path: make_trainer(CASE, data, path, seed=4),
    "strategy": lambda data, path: make_trainer("DE rowwise A-GEM", data, path),
    "terms": lambda data, path: with_model(data, path, 8, TIE()),
    "learning": lambda data, path: with_settings(data, path, learning=replace(LEARNING, lr=0.1)),
    "learning ": lambda data, path: with_settings(data, path, learning=replace(LEARNING, autocast="bf16")),
    "base_learning": lambda data, path: with_settings(data, path, {"learning": replace(LEARNING, epochs=5)}),
    "base": lambda data, path: with_settings(data, path, {"negatives": 7}),
    "base_seed": lambda data, path: with_settings(data, path, {"seed": 5}),
    "negative_pool": lambda data, path: with_settings(data, path, negative_pool=9),
    "new_entities": lambda data, path: with_settings(data, path, new_entities="keep"),
    "evaluator": lambda data, path: make_trainer(CASE, data, path, evaluator=Evaluator(data.timeline, average_from=2)),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_checkpoint_of_another_run(
    dataset: Tiny, begun: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, str(Path(dataset.root).parent / "mirror"))
    shutil.copytree(begun / "run", tmp_path / "run")
    before = sorted((tmp_path / "run").rglob("*"))
    trainer = DIFFERENT[what](dataset, tmp_path / "run")
    with pytest.raises(
        RunFolderError, match=f"the checkpoint belongs to another run: its {what.strip()} is .*, expected "
    ):
        trainer.resume()
    with pytest.raises(RunFolderError, match=r"holds an earlier run: resume\(\) continues it"):
        trainer.pretrain()
    assert sorted((tmp_path / "run").rglob("*")) == before


def test_checkpoint_of_another_version(
    dataset: Tiny, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(begun / "run", tmp_path / "run")
    monkeypatch.setattr(tkg_incremental, "__version__", "9.9")
    with pytest.raises(RunFolderError, match=r"its version is '.*', expected '9\.9'"):
        make_trainer(CASES[0], dataset, tmp_path / "run").resume()


def test_other_validation_and_test_facts(dataset: Tiny, begun: Path, tmp_path: Path) -> None:
    shutil.copytree(begun / "run", tmp_path / "run")
    trainer = make_trainer(CASES[0], dataset, tmp_path / "run")
    timeline, test = trainer.timeline, trainer.timeline.test
    sizes = timeline.num_entities, timeline.num_relations, timeline.num_steps
    timeline.test = FactTable(test.facts[1:], *sizes)
    try:
        with pytest.raises(RunFolderError, match="its held_out is"):
            trainer.resume()
    finally:
        timeline.test = test


def test_a_checkpoint_with_wrong_contents(dataset: Tiny, begun: Path, tmp_path: Path) -> None:
    """A whole file of this run with contents that do not fit is an error that says so."""
    state = load_verified(next((begun / "run" / "checkpoints").glob("*.pt")))
    wrong = [
        ("weights", {}),
        ("generator", torch.zeros(16, dtype=torch.uint8)),
        ("result", {}),
        ("active", {"time": 1}),
    ]
    for number, (part, value) in enumerate(wrong):
        run_dir = tmp_path / str(number)
        save_verified({**state, part: value}, run_dir / "checkpoints" / "00000001.pt")
        with pytest.raises(RunFolderError, match="cannot continue the checkpoint in"):
            make_trainer(CASES[0], dataset, run_dir).resume()


def test_base_models_that_do_not_fit(dataset: Tiny, begun: Path, tmp_path: Path) -> None:
    numbers = itertools.count()

    def pretrain(base: Path, **options: Any) -> None:
        make_trainer(CASES[0], dataset, tmp_path / str(next(numbers)), **options).pretrain(base)

    with pytest.raises(
        RunFolderError, match=r"base model '.*base\.pt' belongs to another run: its base_seed is 3, expected 5"
    ):
        pretrain(begun / "base.pt", seed=5)
    state = load_verified(begun / "base.pt")
    save_verified({**state, "weights": {"x": torch.zeros(1)}}, tmp_path / "misfit.pt")
    with pytest.raises(RunFolderError, match=r"misfit\.pt' does not fit this model"):
        pretrain(tmp_path / "misfit.pt")
    save_verified([1], tmp_path / "list.pt")
    with pytest.raises(CorruptFileError, match="no base model"):
        pretrain(tmp_path / "list.pt")
    (tmp_path / "half.pt").write_bytes((begun / "base.pt").read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="payload should have"):
        pretrain(tmp_path / "half.pt")


class Plain(View):
    """A view without a ``__repr__`` of its own, as users write them."""

    def select(self, timeline: Any, time: int, generator: torch.Generator) -> torch.Tensor:
        quads: torch.Tensor = timeline.observed.deleted(time, 3)
        return quads


def test_terms_without_a_repr_can_be_resumed(dataset: Tiny, tmp_path: Path) -> None:
    def trainer() -> IncrementalTrainer:
        model = DE.from_dataset(dataset, hidden_channels=8)
        strategy = Strategy([CrossEntropy(negatives=10), DeletedFacts(Plain())], "Own")
        return IncrementalTrainer(model, dataset, strategy, tmp_path, settings=settings_for(CASE), callbacks=[])

    first = trainer()
    first.pretrain()
    assert first.folder is not None
    first.folder.release()
    assert trainer().resume().base_is_ready


def test_a_damaged_checkpoint_is_skipped(dataset: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    finish(make_trainer(CASES[0], dataset, tmp_path / "whole"))
    trainer = make_trainer(CASES[0], dataset, tmp_path / "run", callbacks=[Interrupt(8)])
    with pytest.raises(KeyboardInterrupt):
        finish(trainer)
    assert trainer.folder is not None
    newest = trainer.folder.checkpoints[-1]
    newest.write_bytes(newest.read_bytes()[:-7])
    with caplog.at_level(logging.WARNING):
        finish(trainer.resume())
    assert "the checkpoint before is used" in caplog.text
    assert same_bits(tmp_path / "run", tmp_path / "whole")


def test_resume_needs_a_folder(dataset: Tiny) -> None:
    with pytest.raises(RuntimeError, match=r"resume\(\) needs a run_dir"):
        make_trainer(CASES[0], dataset, None).resume()
