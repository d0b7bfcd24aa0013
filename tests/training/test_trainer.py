import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import (
    QUICK,
    STRATEGIES,
    comparable,
    nameless,
    run,
    same,
    settings_for,
    small,
    small_graph,
    trainer_for,
    weights,
)
from timelines import to_tensor
from torch import Tensor, nn

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.data import TimeAxis
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE, HyTE, Static, TKGModel, load_model
from tkg_incremental.strategies import FT, N3, TR, CrossEntropy, FBFuture, Strategy
from tkg_incremental.training import Callback, Result, RunFolderError, StepLearner, TrainerSettings


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return small_graph()


# Runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["rowwise", "published", "adagrad"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_seed_gives_the_same_bits(dataset: SyntheticTKG, name: str, optimizer: str) -> None:
    settings = settings_for(LearningSettings(epochs=2, batch_size=64, lr=0.01, optimizer=optimizer))
    kind = HyTE if name == "tr" else DE
    first, second = (run(dataset, small(name), kind, settings=settings) for _ in range(2))
    assert comparable(first.result) == comparable(second.result)
    assert same(weights(first.model), weights(second.model))
    assert [step["time"] for step in first.result.steps] == [7, 8, 9]
    for step in first.result.steps:
        assert all(math.isfinite(step[metric]) for metric in ("C@10", "A@10", "MRR"))


def test_another_seed_gives_other_bits(dataset: SyntheticTKG) -> None:
    first, second = (run(dataset, small("tie"), seed=seed) for seed in range(2))
    assert comparable(first.result) != comparable(second.result)


def test_huge_seeds(dataset: SyntheticTKG) -> None:
    """Seeds that agree in their lower 32 bits give other runs; a date and time is a seed."""
    found = set()
    for seed in (0, 2**32, 2**33, 20261117195020):
        model = nameless(DE.from_dataset(dataset, hidden_channels=4))
        trainer = IncrementalTrainer(model, dataset, small("tie"), None, seed, "cpu", settings_for(), callbacks=[])
        found.add(tuple(trainer.pretrain().tables()["entity_vectors"].flatten().tolist()))
        trainer.fit()
    assert len(found) == 4


@pytest.mark.parametrize("name", ["tr", "tie"])
def test_the_negative_pool_of_each_step(dataset: SyntheticTKG, name: str) -> None:
    drawn: dict[int, set[int]] = {}

    class Watch(Callback):
        def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
            pool = learner.loader.sampler
            if trainer.base_is_ready:
                drawn[learner.time] = set(pool.entities.tolist())
            else:
                assert pool.has_all

    trainer = run(dataset, small(name), settings=settings_for(negative_pool=5), callbacks=[Watch()])
    again = run(dataset, small(name), settings=settings_for(negative_pool=5))
    every = run(dataset, small(name), settings=settings_for(negative_pool=None))
    assert list(drawn) == [7, 8, 9]
    assert all(5 <= len(members) < 10 for members in drawn.values())
    assert len({frozenset(members) for members in drawn.values()}) > 1
    assert comparable(again.result) == comparable(trainer.result) != comparable(every.result)
    for metric in ("C@10", "A@10"):
        assert all(math.isfinite(step[metric]) for step in trainer.result.steps)


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
@pytest.mark.parametrize(("kind", "name"), [(DE, "tie"), (HyTE, "supersede"), (Static, "tie")])
def test_a_pool_without_known_members(kind: Any, optimizer: str, name: str) -> None:
    """Half of the entities appear at the last steps, so that a pool of one has no member for replayed quads."""
    dataset = SyntheticTKG(num_entities=60, num_relations=2, num_steps=10, facts_per_step=30, added_per_step=6)
    learning = LearningSettings(epochs=2, batch_size=16, lr=0.01, optimizer=optimizer)
    empty = 0
    for seed in range(2):
        trainer = run(dataset, small(name), kind, seed=seed, settings=settings_for(learning, negative_pool=1))
        pools = [trainer.learner(time).loader.sampler for time in (7, 8, 9)]
        empty += sum(int((pool.num_known[4:] == 0).sum()) for pool in pools)
        assert all(math.isfinite(step["C@10"]) for step in trainer.result.steps)
    assert empty > 0


# Results -----------------------------------------------------------------------------------------------


def test_metrics_are_those_of_the_model(dataset: SyntheticTKG) -> None:
    trainer = run(dataset, small("tie"))
    metrics, alpha = Evaluator(dataset.timeline).evaluate(trainer.model, 9)
    last = trainer.result.steps[-1]
    assert {name: last[name] for name in metrics} == pytest.approx(metrics)
    assert trainer.result.alpha[9] == pytest.approx(alpha, nan_ok=True)
    added, deleted = len(dataset[9].added), len(dataset[9].deleted(3))
    assert last["data_size"] == added * 2 * 5 + deleted + 20 * 2 * 3
    assert min(added, deleted) > 0
    assert last["epochs"] == 2
    assert last["label"] == "9"


def test_early_stopping_excludes_what_the_metrics_exclude(dataset: SyntheticTKG) -> None:
    evaluator = Evaluator(dataset.timeline, window=3, exclude_ended=True)
    trainer = IncrementalTrainer(
        DE.from_dataset(dataset, hidden_channels=4), dataset, small("ft"), device="cpu", evaluator=evaluator
    )
    assert (trainer.validator.split, trainer.validator.window, trainer.validator.exclude_ended) == ("val", 3, True)
    assert trainer.result.exclude_ended


def test_files(dataset: SyntheticTKG, tmp_path: Path) -> None:
    trainer = run(dataset, small("ft"), run_dir=tmp_path / "run", seed=3)
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert [written[name] for name in ("dataset", "model", "strategy", "seed")] == ["SyntheticTKG", "DE", "FT", 3]
    assert [(step["time"], step["label"]) for step in written["steps"]] == [(7, "7"), (8, "8"), (9, "9")]
    assert comparable(Result.load(tmp_path / "run" / "metrics.json")) == comparable(trainer.result)
    assert same(weights(trainer.model), weights(load_model(tmp_path / "run" / "model.pt")))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seed"] == 3


def test_repr(dataset: SyntheticTKG) -> None:
    assert str(trainer_for(dataset, small("ft"))) == "IncrementalTrainer(DE, SyntheticTKG, FT, seed=0)"


def test_the_regularization_is_logged(dataset: SyntheticTKG) -> None:
    history = run(dataset, small("tie")).result.history
    assert all(record["TR"] > 0 for record in history)
    assert all({"CE", "RCE", "RKD", "TR"} <= set(record) for record in history)


# Fit ---------------------------------------------------------------------------------------------------


def test_fit_until_a_step(dataset: SyntheticTKG, tmp_path: Path) -> None:
    """In several calls, by index or by date, to the same bits."""
    whole = run(dataset, small("tie"))
    trainer = trainer_for(dataset, small("tie"), run_dir=tmp_path / "run")
    trainer.pretrain()
    assert [step["time"] for step in trainer.fit(until=7).steps] == [7]
    assert [step["time"] for step in trainer.fit(until=7).steps] == [7]  # nothing left to learn
    assert [step["time"] for step in trainer.fit(until="8").steps] == [7, 8]
    assert [step["time"] for step in trainer.fit().steps] == [7, 8, 9]
    assert comparable(trainer.result) == comparable(whole.result)
    assert same(weights(trainer.model), weights(whole.model))


@pytest.mark.parametrize("until", [10, 99, -1])
def test_fit_until_a_step_that_is_not_there(dataset: SyntheticTKG, until: int) -> None:
    trainer = trainer_for(dataset, small("ft"))
    trainer.pretrain()
    with pytest.raises(ValueError, match=rf"until must lie in 0 … 9 \(got {until}\)"):
        trainer.fit(until=until)


@pytest.mark.parametrize("candidates", ["own", "last"])
def test_candidates_of_a_step(dataset: SyntheticTKG, candidates: Any) -> None:
    model = nameless(DE.from_dataset(dataset, hidden_channels=4))
    trainer = IncrementalTrainer(model, dataset, FT(), settings=TrainerSettings(candidates=candidates), callbacks=[])
    time = dataset.num_steps - 1
    known = trainer.learner(time).context.timeline.num_known
    now = int(dataset.timeline.num_known[time])
    assert known[time] == now
    assert (known[0] == now) == (candidates == "last")
    assert (known == dataset.timeline.num_known).all() == (candidates == "own")


def test_the_lock_is_released_after_fit(dataset: SyntheticTKG, tmp_path: Path) -> None:
    """Another trainer can have the folder after fit(), and this one can go on if it has not."""
    trainer = trainer_for(dataset, small("ft"), run_dir=tmp_path)
    trainer.pretrain()
    with pytest.raises(RunFolderError, match="another process, or another trainer of this one, is running in"):
        trainer_for(dataset, small("ft"), run_dir=tmp_path)
    trainer.fit(until=7)
    trainer.fit(until=8)  # takes the lock again
    other = trainer_for(dataset, small("ft"), run_dir=tmp_path).resume()
    with pytest.raises(RunFolderError, match="is running in"):
        trainer.fit()
    assert [step["time"] for step in other.fit().steps] == [7, 8, 9]


def test_fit_all(dataset: SyntheticTKG, tmp_path: Path) -> None:
    trainer = trainer_for(dataset, small("ft"), run_dir=tmp_path / "run")
    found = trainer.fit_all(tmp_path / "base.pt")
    assert found == pytest.approx(Evaluator(dataset.timeline).link_prediction(trainer.model, candidates="all"))
    assert set(found) == {"MRR", "Hits@1", "Hits@3", "Hits@10"}
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert written["link_prediction"] == pytest.approx(found)
    # The model has learnt the facts of all steps.
    initial = weights(DE.from_dataset(dataset, hidden_channels=4))["entity_vectors"]
    moved = (weights(trainer.model)["entity_vectors"] != initial).any(1)
    assert moved[dataset.timeline.known_entities(9)].all()
    again = trainer_for(dataset, small("ft"), callbacks=[NoEpochs()])
    assert again.fit_all(tmp_path / "base.pt") == found
    other = trainer_for(dataset, small("ft"))
    with pytest.raises(RunFolderError, match="its base_last is 9, expected 7"):
        other.pretrain(tmp_path / "base.pt")


def test_fit_all_is_resumed(dataset: SyntheticTKG, tmp_path: Path) -> None:
    class Stop(Callback):
        def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
            if learner.epoch == 2:
                raise KeyboardInterrupt

    settings = settings_for(LearningSettings(epochs=3, batch_size=64, lr=0.01), checkpoint_every=1)
    whole = trainer_for(dataset, small("ft"), settings=settings)
    wanted = whole.fit_all()
    stopped = trainer_for(dataset, small("ft"), run_dir=tmp_path, settings=settings, callbacks=[Stop()])
    with pytest.raises(KeyboardInterrupt):
        stopped.fit_all()
    assert stopped.folder is not None
    stopped.folder.release()
    for _ in range(2):  # in the middle, and when it is finished
        resumed = trainer_for(dataset, small("ft"), run_dir=tmp_path, settings=settings).resume()
        with pytest.raises(RuntimeError):
            resumed.fit()
        assert resumed.fit_all() == wanted
        assert same(weights(whole.model), weights(resumed.model))
    with pytest.raises(RuntimeError, match=r"the model has learnt all steps in fit_all\(\)"):
        resumed.fit()


def test_fit_before_pretrain(dataset: SyntheticTKG) -> None:
    with pytest.raises(RuntimeError, match=r"call pretrain\(\) before fit\(\)"):
        trainer_for(dataset, small("ft")).fit()


def test_fit_all_after_pretrain(dataset: SyntheticTKG) -> None:
    """A base model of the first steps is no model of all steps."""
    trainer = trainer_for(dataset, small("ft"))
    trainer.pretrain()
    with pytest.raises(RuntimeError, match=r"fit_all\(\) must come first: there is a base model up to step 7"):
        trainer.fit_all()


# The base model ----------------------------------------------------------------------------------------


class NoEpochs(Callback):
    """Fails if an epoch is learnt."""

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        raise AssertionError("the base model was there already")


class Watched(Callback):
    """Checks the value of early stopping."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.validator, self.epochs = evaluator, 0

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        assert record["val C@10"] == self.validator.hits(trainer.model, 0, 7)
        self.epochs += 1


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("candidates", ["own", "last"])
def test_candidates_of_the_base_model(
    dataset: SyntheticTKG, monkeypatch: pytest.MonkeyPatch, candidates: str, shared: bool
) -> None:
    drawn: list[tuple[Tensor, Tensor]] = []
    draw = NegativeSampler.draw

    def keep(self: NegativeSampler, *args: Any, **kwargs: Any) -> Any:
        found = draw(self, *args, **kwargs)
        drawn.append((found.time, self.timeline.column_of[found.entities]))
        return found

    monkeypatch.setattr(NegativeSampler, "draw", keep)
    settings = settings_for(base={"candidates": candidates, "negatives": 50, "shared": shared})
    trainer = trainer_for(dataset, small("ft"), settings=settings)
    line = trainer.timeline if candidates == "own" else trainer.timeline.with_known_until(7)
    watched = Watched(Evaluator(line, "val"))
    trainer.callbacks = [watched]
    trainer.pretrain()
    assert watched.epochs > 0
    for step in range(8):
        columns = torch.cat([columns[time == step].flatten() for time, columns in drawn])
        assert int(columns.max()) < int(line.num_known[step])
        beyond = columns >= trainer.timeline.num_known[step]
        assert bool(beyond.any()) == (int(line.num_known[step]) > int(trainer.timeline.num_known[step]))


@pytest.mark.parametrize("negatives", ["all", 20])
@pytest.mark.parametrize("candidates", ["own", "last"])
@pytest.mark.parametrize("kind", [DE, HyTE, Static])
def test_settings_of_the_base_model(dataset: SyntheticTKG, kind: Any, candidates: str, negatives: Any) -> None:
    base = {"candidates": candidates, "negatives": negatives, "learning": LearningSettings(epochs=1)}
    trainer = trainer_for(dataset, small("ft"), kind, settings=settings_for(base=base))
    epochs = []

    class Count(Callback):
        def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
            epochs.append(record["CE"])

    trainer.callbacks = [Count()]
    trainer.pretrain()
    assert len(epochs) == 1
    assert math.isfinite(epochs[0])


def test_the_base_model_learns_from_the_past_alone(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, small("ft"))
    before = weights(trainer.model)["entity_vectors"]
    trainer.pretrain()
    moved = (weights(trainer.model)["entity_vectors"] != before).any(1)
    known = torch.zeros(24, dtype=torch.bool).index_fill_(0, dataset.timeline.known_entities(7), True)
    assert torch.equal(moved, known)
    assert not known.all()


def test_full_batch_with_the_future(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, FBFuture())
    trainer.pretrain()
    learnt = weights(trainer.model)
    result = trainer.fit()
    assert same(learnt, weights(trainer.model))  # nothing is learnt or initialized step by step
    assert [step["epochs"] for step in result.steps] == [0, 0, 0]
    fresh = weights(DE.from_dataset(dataset, hidden_channels=4))
    late = dataset.timeline.order[int(dataset.timeline.num_known[7]) :]
    assert (learnt["entity_vectors"][late] != fresh["entity_vectors"][late]).any(1).all()


# Steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["warm_up", "initialize", "keep"])
def test_new_entities(dataset: SyntheticTKG, how: str) -> None:
    trainer = trainer_for(dataset, Strategy([], "nothing"), settings=settings_for(new_entities=how))
    before = weights(trainer.pretrain())["entity_vectors"].clone()
    trainer.fit()
    changed = (weights(trainer.model)["entity_vectors"] != before).any(1)
    line = dataset.timeline
    late = line.order[int(line.num_known[7]) : int(line.num_known[-1])]
    assert len(late) > 0
    assert torch.equal(changed.nonzero().flatten(), late.sort().values[: len(late) * (how != "keep")])


class Sparse(TKGDataset):
    """Ten steps; nothing is added at steps 7 and 8, step 8 has no test quad, and step 9 brings a new entity."""

    def build(self) -> Graph:
        facts = [(head, 0, (head + 1) % 6, time) for time in range(9) for head in range(6)]
        test = [(0, 0, 2, time) for time in (1, 7, 9)]
        quads = {"train": [*facts, (6, 0, 0, 9)], "val": [], "test": test}
        splits = {name: one_step_facts(to_tensor(rows)) for name, rows in quads.items()}
        return Graph(splits, list("abcdefgh"), ["r"], TimeAxis.from_instants(range(10), "index"))


class StepWeights(Callback):
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        self.seen.append(weights(trainer.model))


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_steps_without_quads_are_skipped(optimizer: str) -> None:
    settings = settings_for(LearningSettings(epochs=2, optimizer=optimizer))
    trainer = trainer_for(Sparse(), TR(negatives=3), settings=settings)
    trainer.pretrain()
    before = weights(trainer.model)
    seen: list[Any] = []
    trainer.callbacks = [StepWeights(seen)]
    result = trainer.fit()
    assert [step["epochs"] for step in result.steps] == [0, 0, 2]
    assert [step["data_size"] for step in result.steps] == [0, 0, 6]
    assert same(before, seen[0])
    assert same(before, seen[1])
    assert not same(before, seen[2])
    assert math.isfinite(result.steps[0]["C@10"])
    assert "C@10" not in result.steps[1]  # no test quads, but the past can still be evaluated
    assert math.isfinite(result.steps[1]["A@10"])
    assert math.isfinite(result.summary["C@10"])
    assert math.isnan(result.steps[1]["epoch_seconds"])


def test_new_entities_start_from_the_initial_distribution() -> None:
    # With the published optimizer all rows shrink from the first update on, known or not.
    base = LearningSettings(epochs=30, lr=0.05, optimizer="published", weight_decay=0.1, patience=30)
    quick = LearningSettings(epochs=1, lr=1e-9)
    settings = settings_for(quick, {"learning": base}, new_entities="initialize")
    trainer = trainer_for(Sparse(), FT(negatives=3), settings=settings)
    trainer.pretrain()
    shrunk = trainer.model.tables()["entity_vectors"][6].abs().max().item()
    trainer.fit()
    new = trainer.model.tables()["entity_vectors"][6].abs().max().item()
    bound = math.sqrt(2) * math.sqrt(6 / (8 + 4))
    assert shrunk < 0.3 * bound
    assert 0.3 * bound < new <= bound
    never = trainer.model.tables()["entity_vectors"][7].abs().max().item()
    assert never < 0.3 * bound  # it occurs in no quad


def test_a_loss_that_is_not_a_number_stops_the_run(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, small("ft"))
    trainer.pretrain()
    trainer.model.tables()["relation_vectors"].data.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match=r"the loss CE became nan in epoch 1 of step 7 \(7\)"):
        trainer.fit()


def test_names_of_losses_are_checked_before_the_run(dataset: SyntheticTKG) -> None:
    strategy = Strategy([CrossEntropy(negatives=3), N3()])
    trainer_for(dataset, strategy)
    with pytest.raises(ValueError, match="losses must have different names .got 'N3' 2 times"):
        trainer_for(dataset, strategy, settings=TrainerSettings(LearningSettings(n3=0.1)))


# A user's modules --------------------------------------------------------------------------------------


class Noisy(nn.Module):
    """A decoder that a user has put dropout in front of."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.inner, self.dropout, self.modes = decoder, nn.Dropout(0.5), list[tuple[bool, bool]]()
        self.similarity = decoder.similarity

    def query(self, given: Tensor, rel: Tensor, side: Any) -> Tensor:
        self.modes.append((torch.is_grad_enabled(), self.dropout.training))
        return self.inner.query(self.dropout(given), rel, side)

    def forward(self, head: Tensor, rel: Tensor, tail: Tensor) -> Tensor:
        return self.inner(self.dropout(head), rel, tail)


def noisy_model(dataset: SyntheticTKG) -> TKGModel:
    model = nameless(DE.from_dataset(dataset, hidden_channels=4))
    model.decoder = Noisy(model.decoder)
    return model


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_dropout_is_active_in_training_only(dataset: SyntheticTKG, optimizer: str) -> None:
    model = noisy_model(dataset)
    settings = settings_for(LearningSettings(epochs=2, batch_size=64, lr=0.01, optimizer=optimizer))
    trainer = IncrementalTrainer(model, dataset, small("ft"), device="cpu", settings=settings, callbacks=[])
    trainer.pretrain()
    trainer.fit()
    modes = set(model.decoder.modes)
    assert modes == {(True, True), (False, False)}
    last = trainer.result.steps[-1]
    metrics, _ = Evaluator(dataset.timeline).evaluate(model, 9)
    assert last["C@10"] == metrics["C@10"]
    assert last["MRR"] == metrics["MRR"]


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_the_previous_model_has_no_dropout(dataset: SyntheticTKG, optimizer: str) -> None:
    """Distillation compares with what the previous model predicts."""
    model = noisy_model(dataset)
    settings = settings_for(LearningSettings(epochs=1, batch_size=64, lr=0.01, optimizer=optimizer))
    trainer = IncrementalTrainer(model, dataset, small("tie"), device="cpu", settings=settings, callbacks=[])
    trainer.pretrain()
    learner = trainer.learner(7)
    learner.run_epoch()
    decoder = learner.context.previous.decoder
    assert isinstance(decoder, Noisy)
    asked = [training for grad, training in decoder.modes if not grad]
    assert asked
    assert not any(asked)


def test_evaluation_keeps_the_mode(dataset: SyntheticTKG) -> None:
    trainer = run(dataset, small("ft"))
    for mode in (True, False):
        trainer.model.train(mode)
        trainer.evaluator.evaluate(trainer.model, 9)
        assert trainer.model.training == mode


def test_settings_are_kept(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, small("ft"))
    assert trainer.settings.learning is QUICK
