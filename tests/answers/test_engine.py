"""Answers by name."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tkg_incremental.answers import AnswerEngine, TensorFacts
from tkg_incremental.answers.calibrate import score_unit
from tkg_incremental.answers.engine import MISTAKES
from tkg_incremental.answers.features import NUM_FEATURES
from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.datasets import SyntheticTKG, WorldLeaders
from tkg_incremental.metrics.calibration import AnswerCalibration, Calibration
from tkg_incremental.models import DE, TKGModel

# Probabilities by log-odds alone.
BY_ODDS = AnswerCalibration(Calibration((1.0,) + (0.0,) * (NUM_FEATURES - 1), -1.0), Calibration((1.0, 0.0), 3.0))


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return SyntheticTKG(num_entities=30, num_relations=3, num_steps=6)


@pytest.fixture
def model(dataset: SyntheticTKG) -> TKGModel:
    model = DE.from_dataset(dataset, hidden_channels=8)
    model.catalog = replace(model.catalog, calibration=BY_ODDS.to_dict())
    return model


def questions(dataset: SyntheticTKG) -> list[tuple[int | None, int, int | None, int]]:
    found: list[tuple[int | None, int, int | None, int]] = []
    for entity in range(0, dataset.num_entities, 3):
        for rel in range(dataset.num_relations):
            for step in (0, dataset.num_steps - 1):
                found += [(None, rel, entity, step), (entity, rel, None, step)]
    return found


def test_types_are_never_violated_and_known_facts_come_first(dataset: SyntheticTKG, model: TKGModel) -> None:
    facts = dataset.timeline.observed.facts.tolist()
    for head, rel, tail, step in questions(dataset):
        asked, given = (0, 2) if head is None else (2, 0)
        members = {dataset.entities[fact[asked]] for fact in facts if fact[1] == rel}
        known = {
            dataset.entities[fact[asked]]
            for fact in facts
            if fact[1] == rel and fact[given] == (tail if head is None else head) and fact[3] <= step <= fact[4]
        }
        answers = model.query(head, rel, tail, step, k=1000)
        assert {answer.name for answer in answers} == members
        assert {answer.name for answer in answers if answer.known is not None} == known
        order = [(answer.known is None, -answer.score) for answer in answers]
        assert order == sorted(order)
        assert all(answer.probability is not None and 0 < answer.probability < 1 for answer in answers)
        for few, all_of_them in zip(model.query(head, rel, tail, step, k=2), answers[:2], strict=True):
            assert few == replace(all_of_them, probability=pytest.approx(all_of_them.probability))


def test_any_type_gives_probabilities_to_the_right_type_only(dataset: SyntheticTKG, model: TKGModel) -> None:
    for question in questions(dataset)[:10]:
        typed = {answer.name: answer.probability for answer in model.query(*question, k=1000)}
        everything = model.query(*question, k=1000, any_type=True)
        assert len(everything) == dataset.num_entities
        found = {answer.name: answer.probability for answer in everything if answer.probability is not None}
        assert found == pytest.approx(typed)


def test_without_a_calibration_there_are_no_probabilities(dataset: SyntheticTKG) -> None:
    model = DE.from_dataset(dataset, hidden_channels=8)
    assert {answer.probability for answer in model.query(None, 0, 1, 2)} == {None}
    assert model.check(0, 0, 1, 2).probability is None


def test_a_new_catalog_counts(dataset: SyntheticTKG, model: TKGModel) -> None:
    assert model.check(0, 0, 1, 2).probability is not None
    model.catalog = replace(model.catalog, calibration=None)
    assert model.check(0, 0, 1, 2).probability is None


def test_a_model_that_learnt_some_of_the_steps(dataset: SyntheticTKG, model: TKGModel) -> None:
    model.catalog = replace(model.catalog, last_step=2)
    facts = dataset.timeline.observed.facts
    assert int(model.answers.facts.facts[:, 3:].max()) == 2
    assert len(model.answers.facts.facts) == int((facts[:, 3] <= 2).sum())
    assert len(model.timeline(0, 0, 1)) == 3
    with pytest.warns(UserWarning, match="4 is after the last step the model learnt: answered as of 2"):
        late = model.query(None, 0, 1, 4)
    assert late == model.query(None, 0, 1, 2)


def test_a_question_about_a_day_is_answered_as_of_its_first_hour() -> None:
    names = Vocabulary(["Ann", "Bea", "Land"]), Vocabulary(["leads"])
    hours = TimeAxis.from_range("2024-01-01T00:00", "2024-01-02T23:00", "hour")
    facts = TensorFacts(torch.tensor([(0, 0, 2, 0, 23), (1, 0, 2, 24, 47)]), hours.num_steps, True)
    engine = AnswerEngine(Fixed([0.0, 0.0, 0.0]), facts, *names, hours, BY_ODDS)
    for when, begin, leader in (("2024-01-02", "2024-01-02", "Bea"), ("2024-01", "2024-01-01", "Ann")):
        with pytest.warns(UserWarning, match=f"{when} is read as {begin} 00:00"):
            assert engine.query(None, "leads", "Land", when)[0].name == leader
    assert engine.query(None, "leads", "Land", "2024-01-01T23:30")[0].name == "Ann"


def test_check_agrees_with_both_directions(dataset: SyntheticTKG, model: TKGModel) -> None:
    head, rel, tail, first, _ = dataset.timeline.observed.facts[0].tolist()
    sides = [
        next(a.probability for a in answers if a.name == dataset.entities[answer])
        for answers, answer in (
            (model.query(None, rel, tail, first, k=1000), head),
            (model.query(head, rel, None, first, k=1000), tail),
        )
    ]
    checked = model.check(head, rel, tail, first)
    assert checked.known is not None
    assert checked.probability == pytest.approx(min(sides))
    point = model.timeline(head, rel, tail)[first]
    assert (point.probability, point.known) == (pytest.approx(checked.probability), True)


def test_a_fact_of_the_wrong_type_can_be_checked(dataset: SyntheticTKG, model: TKGModel) -> None:
    facts = dataset.timeline.observed.facts
    keep = facts[facts[:, 0] != 5].int()
    model.catalog = replace(model.catalog, facts=keep)
    assert 0 < model.check(5, 0, 1, 2).probability < 1


class Fixed(TKGModel):
    """Scores that are given."""

    def __init__(self, scores: list[float]) -> None:
        torch.nn.Module.__init__(self)
        self.fixed = torch.nn.Parameter(torch.tensor(scores))
        self._answers = self.catalog = None

    def score_entities(self, quad: Tensor, side: str, entities: Tensor) -> Tensor:
        return self.fixed[entities]


def fixed_engine(scores: list[float], facts: list[tuple[int, ...]], is_complete: bool = False) -> AnswerEngine:
    names = Vocabulary([f"e{i}" for i in range(len(scores))]), Vocabulary(["r"])
    axis = TimeAxis.from_range(0, 3, "index")
    return AnswerEngine(Fixed(scores), TensorFacts(torch.tensor(facts), 4, is_complete), *names, axis, BY_ODDS)


def test_ties_keep_the_order_of_ids() -> None:
    engine = fixed_engine([0.0, 1.0, 1.0, 1.0, 0.0], [(0, 0, entity, 0, 0) for entity in (1, 2, 3, 4)])
    assert [answer.name for answer in engine.query(0, 0, None, 2)] == ["e1", "e2", "e3", "e4"]
    probabilities = [answer.probability for answer in engine.query(0, 0, None, 2)]
    assert probabilities[0] == probabilities[1] == probabilities[2] > probabilities[3]


def test_probabilities_do_not_depend_on_the_scale_of_the_scores() -> None:
    found = []
    for scale in (1.0, 7.0):
        scores = [scale * score for score in (0.0, 3.0, 1.0, 2.0)]
        engine = fixed_engine(scores, [(0, 0, 1, 0, 1), (0, 0, 2, 3, 3), (1, 0, 3, 0, 3), (1, 0, 2, 0, 3)])
        engine.calibration = replace(BY_ODDS, unit=score_unit(engine, torch.tensor([[0, 0, 1, 0], [1, 0, 3, 0]])))
        found.append([answer.probability for answer in engine.query(0, 0, None, 0)])
    assert found[0] == pytest.approx(found[1])
    assert len(set(found[0])) > 1


def test_world_leaders_has_aliases() -> None:
    dataset = WorldLeaders()
    model = DE.from_dataset(dataset, hidden_channels=4)
    for alias, name in (("USA", "United States"), ("UK", "United Kingdom"), ("uk", "United Kingdom")):
        assert model.query(None, "prime minister of", alias, 2000) == model.query(None, "prime minister of", name, 2000)
    assert model.query(None, "president of", "US", 2016)[0].name == "Barack Obama"


def test_answers_that_are_over_come_last() -> None:
    """Whatever they score, where the facts say when they held: entity 1 has ended, entity 2 begins later."""
    facts = [(0, 0, 1, 0, 1), (0, 0, 2, 3, 3), (1, 0, 3, 0, 3), (1, 0, 4, 0, 3), (0, 0, 5, 0, 3)]
    engine = fixed_engine([0.0, 9.0, 8.0, 1.9, 2.0, 0.5], facts, is_complete=True)
    answers = engine.query(0, 0, None, 2)
    assert [answer.name for answer in answers] == ["e5", "e4", "e3", "e1", "e2"]
    assert [answer.kind for answer in answers] == ["known", "predicted", "predicted", "over", "over"]
    assert [answer.period for answer in answers] == ["since 0", "", "", "ended 2", "begins 3"]
    assert [(answer.ended, answer.begins) for answer in answers[3:]] == [("2", None), (None, "3")]
    assert all(answer.probability is not None and answer.probability <= MISTAKES for answer in answers[3:])
    # Predictions are compared with each other alone.
    assert answers[1].probability == pytest.approx(1 / (1 + math.exp(1.0 - (2.0 - 1.9) * 10)))
    checked = engine.check(0, 0, 1, 2)
    assert (checked.known, checked.ended) == (None, "2")
    assert checked.probability is not None
    assert checked.probability <= MISTAKES
    assert [point.known for point in engine.timeline(0, 0, 1)] == [True, True, False, False]
    assert max(point.probability for point in engine.timeline(0, 0, 1)[2:]) <= MISTAKES
    (relation,) = engine.query(0, None, 1, 2)
    assert (relation.kind, relation.ended) == ("over", "2")
    # A run leaves facts out: what ended may hold again.
    engine = fixed_engine([0.0, 9.0, 8.0, 1.0, 2.0, 0.5], facts)
    assert [answer.name for answer in engine.query(0, 0, None, 2)] == ["e5", "e1", "e2", "e4", "e3"]
    assert engine.check(0, 0, 1, 2).kind == "predicted"


OFFICE = [(holder, 0, 0, 4 * holder, 4 * holder + 3) for holder in (1, 2, 3)]
CLUB = [(member, 0, 0, 0, 11) for member in (1, 2, 3)] + [(4, 0, 5, 0, 11)]
OTHERS = [(4, 0, 6, 0, 0), (5, 0, 6, 1, 1)]


@pytest.mark.parametrize("is_complete", [False, True])
def test_beside_a_known_answer_others_are_as_probable_as_there_are_further_ones(is_complete: bool) -> None:
    """Whatever they score: entity 4 is far ahead of all others."""
    names = Vocabulary([f"e{i}" for i in range(7)]), Vocabulary(["r"])
    axis, found = TimeAxis.from_range(0, 11, "index"), {}
    for kind, facts in (("office", OFFICE), ("club", CLUB)):
        known = TensorFacts(torch.tensor(facts + OTHERS), 12, is_complete)
        engine = AnswerEngine(Fixed([0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0]), known, *names, axis, BY_ODDS)
        first = next(a for a in engine.query(None, 0, 0, 5, k=9) if a.kind == "predicted")
        assert first.name == "e4"
        found[kind] = first.probability
        limit = float(known.further_answers(0, "head")[1])
        assert first.probability == pytest.approx(min(limit, 1.0), abs=1e-3)
        point, checked = engine.timeline(4, 0, 0)[5], engine.check(4, 0, 0, 5)
        (relation,) = engine.query(4, None, 0, 5)
        assert {point.probability, relation.probability} == {checked.probability}
        assert checked.probability <= limit
    assert found["office"] < 0.15
    assert found["club"] > 0.8


@pytest.mark.parametrize("is_complete", [False, True])
def test_without_a_known_answer_the_limit_is_how_often_there_is_one(is_complete: bool) -> None:
    """Entity 1 holds an office for 2 of 20 steps. Facts that were left out may say more."""
    names = Vocabulary([f"e{i}" for i in range(5)]), Vocabulary(["r"])
    facts = [(1, 0, 0, 4, 5), (2, 0, 3, 2, 3), (4, 0, 3, 9, 10)]
    known = TensorFacts(torch.tensor(facts), 20, is_complete)
    engine = AnswerEngine(Fixed([0.0, 0.0, 0.0, 9.0, 0.0]), known, *names, TimeAxis.from_range(0, 19, "index"), BY_ODDS)
    first = engine.query(1, 0, None, 12)[0]
    assert first.name == "e3"
    assert (first.probability < 0.2) == is_complete
    assert engine.query(0, 0, None, 12)[0].probability > 0.9  # entity 0 never was a head: nothing is known about it
