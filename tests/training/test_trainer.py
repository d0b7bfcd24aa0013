import json
import math
from pathlib import Path
from typing import Any

import pytest
from runs import STRATEGIES, comparable, run, same, small, small_graph, trainer_for, weights
from timelines import to_tensor

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE, HyTE
from tkg_incremental.strategies import FT, TR
from tkg_incremental.training import Callback, ProgressBar, Result, StepLearner, TrainingError


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return small_graph()


# What a run gives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_seed_gives_the_same_bits(dataset: SyntheticTKG, name: str, optimizer: str) -> None:
    settings = LearningSettings(epochs=2, batch_size=64, lr=0.01, optimizer=optimizer)
    kind = HyTE if name == "tr" else DE
    first, second = (run(dataset, small(name), kind, settings=settings) for _ in range(2))
    assert comparable(first.result) == comparable(second.result)
    assert same(weights(first.model), weights(second.model))
    assert [step["time"] for step in first.result.steps] == [7, 8, 9]
    for step in first.result.steps:
        assert all(math.isfinite(step[metric]) for metric in ("C@10", "A@10", "MRR"))


def test_another_seed_gives_others(dataset: SyntheticTKG) -> None:
    first, second = (run(dataset, small("tie"), seed=seed) for seed in range(2))
    assert comparable(first.result) != comparable(second.result)


@pytest.mark.parametrize("name", ["tr", "tie"])
def test_negatives_come_from_a_pool_that_is_new_at_each_step(dataset: SyntheticTKG, name: str) -> None:
    drawn: dict[int, set[int]] = {}

    class Watch(Callback):
        def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
            if trainer.base_is_ready:
                drawn[learner.step.snapshot.time] = set(learner.step.negatives.pool.order.tolist())
            else:
                assert learner.step.negatives.pool.is_everybody

    trainer = run(dataset, small(name), negative_pool=5, callbacks=[Watch()])
    again = run(dataset, small(name), negative_pool=5)
    everybody = run(dataset, small(name), negative_pool=None)
    assert list(drawn) == [7, 8, 9]
    assert all(5 <= len(members) < 10 for members in drawn.values())
    assert len({frozenset(members) for members in drawn.values()}) > 1
    assert comparable(again.result) == comparable(trainer.result) != comparable(everybody.result)
    for metric in ("C@10", "A@10"):
        assert all(math.isfinite(step[metric]) for step in trainer.result.steps)
    with pytest.raises(ValueError, match=r"negative_pool must be None or at least 1 \(got 0\)"):
        run(dataset, small(name), negative_pool=0)


@pytest.mark.parametrize("kind", [DE, HyTE])
@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_a_pool_of_which_nobody_is_known_at_first(kind: type[DE | HyTE], optimizer: str) -> None:
    """Half of the entities come with the last steps, so that a pool of one has nobody for rows that are replayed."""
    dataset = SyntheticTKG(num_entities=60, num_relations=2, num_steps=10, facts_per_step=30, added_per_step=6)
    settings = LearningSettings(epochs=2, batch_size=16, lr=0.01, optimizer=optimizer)
    nobody = 0
    for seed in range(4):
        trainer = run(dataset, small("tie"), kind, seed=seed, negative_pool=1, settings=settings)
        pools = [trainer.learner(time).step.negatives.pool for time in (7, 8, 9)]
        nobody += sum(int((pool.num_known[4:] == 0).sum()) for pool in pools)
        assert all(math.isfinite(step["C@10"]) for step in trainer.result.steps)
    assert nobody > 0


def test_metrics_are_those_of_the_model(dataset: SyntheticTKG) -> None:
    trainer = run(dataset, small("tie"))
    metrics, alpha = Evaluator(dataset.timeline).evaluate(trainer.model, 9)
    last = trainer.result.steps[-1]
    assert {name: last[name] for name in metrics} == pytest.approx(metrics)
    assert trainer.result.alpha[9] == pytest.approx(alpha.tolist(), nan_ok=True)
    added, deleted = len(dataset[9].added), len(dataset[9].deleted(3))
    assert last["data_size"] == added * 2 * 5 + deleted + 20 * 2 * 3
    assert min(added, deleted) > 0
    assert last["epochs"] == 2
    assert last["label"] == "9"


def test_metrics_json(dataset: SyntheticTKG, tmp_path: Path) -> None:
    trainer = run(dataset, small("ft"), run_dir=tmp_path / "run", seed=3)
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (written["dataset"], written["model"], written["strategy"], written["seed"]) == (
        "SyntheticTKG",
        "DE",
        "FT",
        3,
    )
    summary = ["C@10", "DF@10", "RRD", "A@10", "MRR", "F@10", "data_size", "epoch_seconds"]
    assert list(written["summary"]) == summary
    assert [(step["time"], step["label"]) for step in written["steps"]] == [(7, "7"), (8, "8"), (9, "9")]
    for name in summary:
        values = [step[name] for step in written["steps"] if step[name] is not None]
        assert written["summary"][name] == pytest.approx(sum(values) / len(values))
    assert written["steps"][0]["F@10"] is None  # nothing can have been forgotten yet
    assert [len(row) for row in written["alpha"]] == [10, 10, 10]
    for step, row in zip(written["steps"], written["alpha"], strict=True):
        assert row[step["time"]] == step["C@10"]
        assert row[step["time"] + 1 :] == [None] * (9 - step["time"])
        known = [value for value in row if value is not None]
        assert step["A@10"] == pytest.approx(sum(known) / len(known))
    assert (tmp_path / "run" / "model.pt").exists()
    assert comparable(Result.load(tmp_path / "run" / "metrics.json")) == comparable(trainer.result)


def test_what_a_person_reads(dataset: SyntheticTKG) -> None:
    trainer = run(dataset, small("ft"))
    assert str(trainer) == "IncrementalTrainer(DE, SyntheticTKG, FT, seed=0)"
    title, header, _, values = str(trainer.result).splitlines()
    assert title == "FT · DE · SyntheticTKG · seed 0 · 3 steps"
    assert header.split()[:4] == ["C@10", "DF@10", "RRD", "A@10"]
    assert len(values.split()) == len(header.split())


# Steps -------------------------------------------------------------------------------------------------


class Sparse(TKGDataset):
    """Ten steps; nothing is added at steps 7 and 8, nobody asks at step 8, and step 9 brings a new entity."""

    def build(self) -> Graph:
        facts = [(head, 0, (head + 1) % 6, time) for time in range(9) for head in range(6)]
        test = [(0, 0, 2, time) for time in (1, 7, 9)]
        splits = {"train": to_tensor([*facts, (6, 0, 0, 9)]), "val": to_tensor([]), "test": to_tensor(test)}
        return Graph(splits, list("abcdefgh"), ["r"], TimeAxis.from_instants(range(10), "index"))


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_steps_with_nothing_to_train_on_are_skipped(optimizer: str) -> None:
    settings = LearningSettings(epochs=2, optimizer=optimizer)
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
    assert "C@10" not in result.steps[1]  # nobody asked, but the past can still be evaluated
    assert math.isfinite(result.steps[1]["A@10"])
    assert math.isfinite(result.summary["C@10"])
    assert math.isnan(result.steps[1]["epoch_seconds"])


def test_new_entities_start_from_the_initial_distribution() -> None:
    # With the published optimiser all rows shrink from the first update on, known or not.
    settings = LearningSettings(epochs=30, lr=0.05, optimizer="published", weight_decay=0.1, patience=30)
    quick = LearningSettings(epochs=1, lr=1e-9)
    trainer = trainer_for(Sparse(), FT(negatives=3), settings=quick, base_settings=settings, new_entities="fresh")
    trainer.pretrain()
    shrunk = trainer.model.encoder.tables()["entity_vectors"][6].abs().max().item()
    trainer.fit()
    new = trainer.model.encoder.tables()["entity_vectors"][6].abs().max().item()
    bound = math.sqrt(2) * math.sqrt(6 / (8 + 4))
    assert shrunk < 0.3 * bound
    assert 0.4 * bound < new <= bound
    never = trainer.model.encoder.tables()["entity_vectors"][7].abs().max().item()
    assert never < 0.3 * bound  # in no row at all, so it never came


def test_a_loss_that_is_no_number_stops_the_run(dataset: SyntheticTKG) -> None:
    trainer = trainer_for(dataset, small("ft"))
    trainer.pretrain()
    trainer.model.encoder.tables()["relation_vectors"].data.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"the loss term CE became nan in epoch 1 of step 7 \(7\)"):
        trainer.fit()


# Who watches -------------------------------------------------------------------------------------------


class Witness(Callback):
    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def on_step_begin(self, trainer: IncrementalTrainer, learner: StepLearner) -> None:
        self.seen.append(f"step_begin {learner.step.snapshot.time}")

    def on_epoch_end(self, trainer: IncrementalTrainer, learner: StepLearner, record: dict[str, float]) -> None:
        self.seen.append(f"epoch {learner.epoch} {sorted(record)}")

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        self.seen.append(f"step_end {record and record['time']}")

    def on_end(self, trainer: IncrementalTrainer) -> None:
        self.seen.append("end")


class StepWeights(Callback):
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def on_step_end(self, trainer: IncrementalTrainer, record: dict[str, Any] | None) -> None:
        self.seen.append(weights(trainer.model))


def test_callbacks(dataset: SyntheticTKG) -> None:
    seen: list[str] = []
    run(dataset, small("ft"), callbacks=[Witness(seen)])
    epochs = [f"epoch {epoch} ['CE', 'val C@10']" for epoch in (1, 2)]
    steps = [event for time in (7, 8, 9) for event in (f"step_begin {time}", *epochs, f"step_end {time}")]
    assert seen == ["step_begin 7", *epochs, "step_end None", *steps, "end"]


def test_watching_changes_nothing(dataset: SyntheticTKG, capsys: pytest.CaptureFixture[str]) -> None:
    watched, alone = run(dataset, small("ft"), callbacks=[ProgressBar(), Callback()]), run(dataset, small("ft"))
    assert comparable(watched.result) == comparable(alone.result)
    assert capsys.readouterr().out == ""
