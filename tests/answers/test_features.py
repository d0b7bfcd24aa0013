"""Features of answers, from given scores."""

import math

import pytest
import torch

from tkg_incremental.answers import TensorFacts
from tkg_incremental.answers.facts import Marks
from tkg_incremental.answers.features import NUM_FEATURES, NUM_OWN, answer_features, answer_limit

FACTS = TensorFacts(torch.tensor([(0, 0, 1, 0, 1), (0, 0, 2, 3, 3), (1, 0, 3, 0, 3), (1, 0, 2, 0, 3)]), 4)


def marks_at_step_0() -> Marks:
    return Marks(torch.tensor([True, False, False]), torch.tensor([False, True, False]), False)


def test_features() -> None:
    scores = torch.tensor([3.0, 1.0, 2.0])
    # With a unit of ten, the softmax is that of the scores.
    features = answer_features(FACTS, 0, "tail", scores, marks_at_step_0(), 10.0)
    assert features.shape == (3, NUM_FEATURES + 1)
    rest = [math.log(math.exp(1) + math.exp(2)), 2.0, 1.0]  # entity 1 is known and not among the others
    odds = [score - other for score, other in zip(scores.tolist(), rest, strict=True)]
    assert features[:, 0].tolist() == pytest.approx(odds, abs=1e-6)
    assert features[:, 1].tolist() == pytest.approx([1.0, -1.0, 1.0])
    assert features[:, 2].exp().tolist() == pytest.approx([1.0, 2.0, 1.0])
    assert features[:, 4].tolist() == [0.0, 1.0, 0.0]  # known at another time
    assert features[:, 5].tolist() == [1.0, 1.0, 1.0]  # the given entity fits
    assert features[:, 6].tolist() == [1.0, 1.0, 1.0]  # the query has a known answer
    assert NUM_OWN == 2
    assert features[:, NUM_FEATURES - 1].tolist() == [0.0, 0.0, 0.0]
    assert features[:, -1].tolist() == pytest.approx([float(FACTS.further_answers(0, "tail")[1])] * 3)


def test_features_of_a_given_entity_that_does_not_fit() -> None:
    marks = Marks(torch.zeros(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool), False)
    features = answer_features(FACTS, 0, "tail", torch.tensor([3.0, 1.0, 2.0]), marks, 10.0)
    assert features[:, 5].tolist() == [0.0, 0.0, 0.0]
    assert features[:, NUM_FEATURES - 1].tolist() == pytest.approx([math.log(3 / 2)] * 3)  # three tails of two heads


def test_features_depend_on_scores_in_their_unit() -> None:
    scores = torch.tensor([3.0, 1.0, 2.0])
    found = [answer_features(FACTS, 0, "tail", scale * scores, marks_at_step_0(), scale) for scale in (1.0, 7.0)]
    assert torch.allclose(*found)


def test_features_of_chosen_candidates() -> None:
    scores, chosen = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([2, 0])
    everything = answer_features(FACTS, 0, "tail", scores, marks_at_step_0(), 1.0)
    assert torch.equal(answer_features(FACTS, 0, "tail", scores, marks_at_step_0(), 1.0, chosen), everything[chosen])


@pytest.mark.parametrize("known", [[True], [False], [True, True], [False, False]])
@pytest.mark.parametrize("is_closed", [False, True])
def test_features_of_few_candidates_are_finite(known: list[bool], is_closed: bool) -> None:
    marks = Marks(torch.tensor(known), ~torch.tensor(known), is_closed)
    features = answer_features(FACTS, 0, "tail", torch.full((len(known),), 1e4), marks, 1.0)
    assert torch.isfinite(features[:, :NUM_FEATURES]).all()
    assert (features[:, NUM_FEATURES] > 0).all()


def test_limits() -> None:
    """Of three questions: two known answers, one that holds at another time, nothing known."""
    known = torch.tensor([[True, True, False], [False, False, False], [False, False, False]])
    other = torch.tensor([[False, False, True], [False, True, False], [False, False, False]])
    none, *_, last = FACTS.further_answers(0, "tail").tolist()
    for is_closed, unanswered in ((True, none), (False, math.inf)):
        found = answer_limit(FACTS, 0, "tail", Marks(known, other, is_closed))
        assert found.tolist() == [last, unanswered, math.inf]
        assert answer_limit(FACTS, 0, "tail", Marks(known[0], other[0], is_closed)).tolist() == last
