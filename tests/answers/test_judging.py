"""Questions that a calibration is about, and which of their answers are true, against sets of quads."""

import pytest
import torch
from torch import Tensor

from tkg_incremental.answers import AnswerEngine
from tkg_incremental.answers.judging import judge, score_questions, without_answer
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE, TKGModel, TNTComplEx
from tkg_incremental.ops.answers import SIDES

ALL = 10**6


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return SyntheticTKG(num_entities=40, num_relations=3, num_steps=6)


@pytest.fixture(params=[DE, TNTComplEx])
def model(dataset: SyntheticTKG, request: pytest.FixtureRequest) -> TKGModel:
    return request.param.from_dataset(dataset, hidden_channels=8)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def splits(timeline: Timeline) -> dict[str, set[tuple[int, ...]]]:
    return {name: set(map(tuple, timeline.split(name).quads().tolist())) for name in ("train", "val", "test")}


def open_answers(
    engine: AnswerEngine, truth: dict[str, set[tuple[int, ...]]], quad: Tensor, side: str
) -> list[tuple[int, ...]]:
    """Facts of the candidates that are neither known nor true in the test split."""
    head, rel, tail, step = quad.tolist()
    members = engine.candidates(rel, side).tolist()
    facts = [(head, rel, e, step) if side == "tail" else (e, rel, tail, step) for e in members]
    return [f for f in facts if f not in truth["train"] and (f in truth["val"] or f not in truth["test"])]


def test_judged_answers(dataset: SyntheticTKG, model: TKGModel) -> None:
    timeline, engine = dataset.timeline, model.answers
    quads, truth = timeline.val.between(0, 5).sample(30, generator()), splits(dataset.timeline)
    for quad in quads:
        _, is_true, is_held_out, _ = judge(engine, timeline, quads[:0], quad[None], "val", generator(), ALL)
        expected = []
        for side, answer in zip(SIDES, (quad[2], quad[0]), strict=True):
            if int(answer) in engine.candidates(int(quad[1]), side).tolist():
                expected += open_answers(engine, truth, quad, side)
        assert int(is_held_out.sum()) == len(expected)
        assert int(is_true.sum()) == sum(fact in truth["val"] for fact in expected)
        assert not bool((is_true & ~is_held_out).any())


def test_known_answers_are_no_candidates(dataset: SyntheticTKG, model: TKGModel) -> None:
    """The questions of train quads: what else may be true?"""
    timeline, engine = dataset.timeline, model.answers
    train, truth = timeline.train.between(0, 5).sample(20, generator()), splits(dataset.timeline)
    assert judge(engine, timeline, train, train[:0], "val", generator(), ALL)[3] == 40
    for quad in train:
        _, is_true, is_held_out, _ = judge(engine, timeline, quad[None], train[:0], "val", generator(), ALL)
        left = [fact for side in SIDES for fact in open_answers(engine, truth, quad, side)]
        assert tuple(quad.tolist()) not in left
        assert not bool(is_held_out.any())
        assert (len(is_true), int(is_true.sum())) == (len(left), sum(fact in truth["val"] for fact in left))


def test_features_are_those_of_the_single_questions(dataset: SyntheticTKG, model: TKGModel) -> None:
    timeline, engine = dataset.timeline, model.answers
    quads = timeline.val.between(0, 5).sample(20, generator())
    for side, given in (("tail", 0), ("head", 2)):
        for rows, rel, candidates, all_scores, all_marks, _ in score_questions(engine, timeline, quads, side):
            features = engine.features(rel, side, all_scores, all_marks)
            for place, row in enumerate(rows.tolist()):
                quad = quads[row].tolist()
                scores = engine.scores(quad[given], quad[1], side, quad[3], candidates)
                assert torch.allclose(all_scores[place], scores, atol=1e-6)
                marks = all_marks._replace(known=all_marks.known[place], other=all_marks.other[place])
                assert torch.allclose(features[place], engine.features(rel, side, scores, marks), atol=1e-4)


def test_the_best_answers_and_some_others(dataset: SyntheticTKG, model: TKGModel) -> None:
    timeline, engine = dataset.timeline, model.answers
    train, none = timeline.train.between(0, 5).sample(20, generator()), timeline.val.quads()[:0]
    every, best, more = (
        judge(engine, timeline, train, none, "val", generator(), *sizes)[0] for sizes in ((ALL,), (2,), (2, 3))
    )
    assert len(best) == 2 * 40
    assert len(more) == 5 * 40
    assert (best[:, 2] <= 1e-9 + torch.tensor(2.0).log()).all()  # logarithm of the rank
    seen = {tuple(row) for row in every.tolist()}
    assert {tuple(row) for row in more.tolist()} <= seen
    assert len({tuple(row) for row in more.tolist()}) > 4 * 40


def test_questions_without_an_answer_have_none(dataset: SyntheticTKG) -> None:
    timeline, source = dataset.timeline, generator()
    facts, quads = timeline.truth.facts.tolist(), timeline.val.between(0, 5).sample(40, source)
    for side, given in (("tail", 0), ("head", 2)):
        found = without_answer(timeline, quads, side, source)
        assert len(found) > 5
        for question in found.tolist():
            assert not any(
                fact[given] == question[given] and fact[1] == question[1] and fact[3] <= question[3] <= fact[4]
                for fact in facts
            )
        assert not len(without_answer(timeline, quads[:0], side, source))
