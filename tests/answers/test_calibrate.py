"""Calibration of answers: what it is fitted on, and what a run records."""

import math
import random
from pathlib import Path

import pytest
import torch

from tkg_incremental import IncrementalTrainer, LearningSettings, TrainerSettings
from tkg_incremental.answers import AnswerEngine, calibrate_answers, known_facts_ranked_first, measure_calibration
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG, WorldLeaders
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models import DE, TKGModel, TNTComplEx, load_model
from tkg_incremental.strategies import FT
from tkg_incremental.training import BaseSettings, Result


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return SyntheticTKG(num_entities=40, num_relations=3, num_steps=6)


@pytest.fixture
def model(dataset: SyntheticTKG) -> TKGModel:
    return DE.from_dataset(dataset, hidden_channels=8)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_a_known_answer_leaves_little_to_others() -> None:
    """Where a question has one answer, others are improbable once it is known, whatever they score."""
    dataset = WorldLeaders()
    model = TNTComplEx.from_dataset(dataset, 32, reciprocal=True)
    calibrate_answers(model, dataset.timeline, dataset.num_steps - 1)
    known, *others = model.query(None, "president of", "United States", "2016", k=5)
    assert known.known is not None
    assert max(answer.probability for answer in others) < 0.1


def test_the_calibration_is_part_of_the_model(dataset: SyntheticTKG, model: TKGModel) -> None:
    found = calibrate_answers(model, dataset.timeline, dataset.num_steps - 1)
    assert 0 <= found["ECE"] <= 1
    assert 0 <= found["Brier"] <= 1
    assert all(answer.probability is not None for answer in model.query(None, 0, 1, 2))
    again = DE.from_dataset(dataset, hidden_channels=8)
    assert calibrate_answers(again, dataset.timeline, dataset.num_steps - 1) == found
    assert again.catalog.calibration == model.catalog.calibration


def test_measured_probabilities_are_those_of_the_answers(
    dataset: SyntheticTKG, model: TKGModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their limits: where all of them are a half, the error of each answer is a quarter."""
    calibrate_answers(model, dataset.timeline, dataset.num_steps - 1)
    train, test = (dataset.timeline.split(name).quads() for name in ("train", "test"))
    monkeypatch.setattr(AnswerCalibration, "predict", lambda self, features, limits: torch.full_like(limits, 0.5))
    found = measure_calibration(model.answers, dataset.timeline, train, test, generator())
    assert found["Brier"] == 0.25
    head, rel, _, first, _ = dataset.timeline.observed.facts[0].tolist()
    answers = model.query(head, rel, None, first, k=1000)
    assert {answer.probability for answer in answers if answer.kind == "predicted"} == {0.5}


def test_without_held_out_facts_only_known_ones_have_a_probability(dataset: SyntheticTKG, model: TKGModel) -> None:
    timeline = dataset.timeline
    nothing = timeline.val.facts[:0]
    alone = type(timeline)({"train": timeline.train.facts, "val": nothing, "test": nothing}, 40, 3, timeline.axis)
    assert calibrate_answers(model, alone, 5) == {}
    head, rel, _, first, _ = timeline.observed.facts[0].tolist()
    answers = model.query(head, rel, None, first, k=1000)
    assert {answer.known is None for answer in answers} == {True, False}
    assert all((answer.probability is None) == (answer.known is None) for answer in answers)
    with pytest.raises(ValueError, match="engine must have a calibration of predicted answers"):
        measure_calibration(
            model.answers, timeline, *(table.quads() for table in (timeline.train, timeline.test)), generator()
        )


def test_known_facts_ranked_first(dataset: SyntheticTKG, model: TKGModel) -> None:
    timeline, first, total = dataset.timeline, 0, 0
    truth = set(map(tuple, timeline.truth.quads().tolist()))
    for head, rel, tail, step in timeline.observed.quads().tolist():
        for side in ("tail", "head"):
            members = model.answers.candidates(rel, side)
            given, answer = (head, tail) if side == "tail" else (tail, head)
            scores = dict(zip(members.tolist(), model.answers.scores(given, rel, side, step, members), strict=True))
            others = [
                score
                for e, score in scores.items()
                if ((head, rel, e, step) if side == "tail" else (e, rel, tail, step)) not in truth
            ]
            first += all(scores[answer] > score for score in others)
            total += 1
    assert known_facts_ranked_first(model, timeline, sample=10**6) == pytest.approx(first / total)


def test_ties_do_not_rank_first(dataset: SyntheticTKG, model: TKGModel) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert known_facts_ranked_first(model, dataset.timeline, sample=50) == 0.0


def test_a_run_records_it(dataset: SyntheticTKG, tmp_path: Path) -> None:
    model = DE.from_dataset(dataset, hidden_channels=8)
    settings = TrainerSettings(LearningSettings(epochs=1))
    trainer = IncrementalTrainer(model, dataset, FT(), tmp_path, settings=settings, callbacks=[])
    trainer.pretrain()
    result = trainer.fit()
    assert result.calibration.keys() >= {"Brier", "ECE", "reliability", "questions"}
    assert 0 <= result.known_ranked_first <= 1
    saved = Result.load(tmp_path / "metrics.json")
    assert saved.calibration["ECE"] == result.calibration["ECE"]
    assert saved.known_ranked_first == result.known_ranked_first
    loaded = load_model(tmp_path / "model.pt")
    assert loaded.query(None, 0, 1, 2) == model.query(None, 0, 1, 2)
    assert loaded.query(None, 0, 1, 2)[0].probability is not None
    assert math.isnan(Result.from_dict({**result.to_dict(), "known_ranked_first": None}).known_ranked_first)


def test_a_run_that_stops_early_answers_as_of_its_last_step(dataset: SyntheticTKG, tmp_path: Path) -> None:
    model = DE.from_dataset(dataset, hidden_channels=8)
    settings = TrainerSettings(LearningSettings(epochs=1))
    trainer = IncrementalTrainer(model, dataset, FT(), tmp_path, settings=settings, callbacks=[])
    trainer.pretrain()
    trainer.fit(until=4)
    loaded = load_model(tmp_path / "model.pt")
    assert loaded.catalog.last_step == 4
    with pytest.warns(UserWarning, match="5 is after the last step the model learnt: answered as of 4"):
        loaded.query(None, 0, 1, 5)


@pytest.mark.slow
def test_probabilities_of_world_leaders_can_be_trusted() -> None:
    dataset = WorldLeaders()
    timeline = dataset.timeline
    model = TNTComplEx.from_dataset(dataset, 128, reciprocal=True)
    learning = LearningSettings(
        epochs=20, patience=1000, lr=0.1, optimizer="adagrad", n3=1e-2, smoothness=0.1, batch_size=1000, max_norm=None,
        validate_every=1000,
    )  # fmt: skip
    settings = TrainerSettings(learning, BaseSettings(visits=10))
    trainer = IncrementalTrainer(model, dataset, FT(), settings=settings, callbacks=[])
    trainer.fit_all()
    assert trainer.result.calibration["ECE"] <= 0.05
    assert trainer.result.calibration["ECE_answered"] <= 0.05
    assert _share_of_low_probabilities(model.answers, timeline) >= 0.9
    offices = ["president of", "prime minister of", "chancellor of", "monarch of"]
    right, probabilities = [], []
    for rel in offices:
        r = dataset.relations.index(rel)
        for country in model.answers.facts.type_members(r, "tail").tolist():
            for step in range(timeline.num_steps):
                answers = model.query(None, r, country, timeline.labels[step], k=1000)
                known = [a.probability for a in answers if a.known]
                if known:
                    rivals = [a.probability for a in answers if not a.known]
                    right += [p > max(rivals) for p in known]
                    probabilities += known
    assert sum(right) / len(right) >= 0.95
    assert sorted(probabilities)[len(probabilities) // 2] >= 0.8


def _share_of_low_probabilities(engine: AnswerEngine, timeline: Timeline) -> float:
    """Questions about 50 entities that never were on the given side of a relation."""
    rng, facts, low, count = random.Random(0), timeline.truth.facts, 0, 0
    while count < 50:
        rel, entity = rng.randrange(timeline.num_relations), rng.randrange(timeline.num_entities)
        side, given = rng.choice([("head", 2), ("tail", 0)])
        candidates = engine.candidates(rel, side)
        if ((facts[:, 1] == rel) & (facts[:, given] == entity)).any() or not len(candidates):
            continue
        highest = engine.evaluate(entity, rel, side, rng.randrange(timeline.num_steps), candidates)[1].max()
        low, count = low + int(highest < 0.2), count + 1
    return low / count
