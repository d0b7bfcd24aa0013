import math

import pytest
from learning import Lesson
from timelines import make_timeline

from tkg_incremental.metrics import Evaluator
from tkg_incremental.strategies import (
    Added,
    Contrast,
    CrossEntropy,
    Current,
    Deleted,
    Replay,
    Replayed,
    ReplayOptions,
    Successors,
    Supersede,
    TemporalRegularization,
    UnlikelihoodLoss,
)


def test_terms() -> None:
    assert [type(term) for term in Supersede().terms] == [
        CrossEntropy,
        TemporalRegularization,
        CrossEntropy,
        Contrast,
        Replay,
    ]
    least = Supersede(contrast=0, replay=None, current_negatives=0)
    assert [type(term) for term in least.terms] == [CrossEntropy, TemporalRegularization]
    assert Supersede().name == "Supersede"


def test_options() -> None:
    _, regularization, current, contrast, unlikelihood, replay = Supersede(
        window=3,
        contrast=0.2,
        unlikelihood=2.0,
        replay=ReplayOptions(weight=0.3, distill=0.4),
        regularization=0.5,
    ).terms
    assert regularization == TemporalRegularization(0.5)
    assert current == CrossEntropy(Current(), 50, name="CE current")
    assert contrast == Contrast(Successors(3), 3, weight=0.2)
    assert unlikelihood == UnlikelihoodLoss(Deleted(3, unreplaced=True), 50, 2.0)
    assert replay == Replay(Replayed(3, 1800), 50, False, 0.3, 0.4)
    own = Contrast(rivals=5), UnlikelihoodLoss(Deleted(3), 100, open_only=False)
    assert Supersede(contrast=own[0], unlikelihood=own[1], replay=None).terms[-2:] == own
    repeated = Supersede(repeats=3, current_limit=40)
    assert repeated.terms[0] == CrossEntropy(Added(3), 500)
    assert repeated.terms[2] == CrossEntropy(Current(40), 50, name="CE current")
    assert not any(isinstance(term, TemporalRegularization) for term in Supersede(regularization=0).terms)
    far = Supersede(replay=ReplayOptions("boundary", window=7))
    assert far.terms[-1].view == Replayed(7, 6000, "boundary")


@pytest.mark.parametrize("name", ["contrast", "unlikelihood", "regularization"])
def test_weights_must_not_be_negative(name: str) -> None:
    with pytest.raises(ValueError, match=r"weight must be at least 0 \(got -1\)"):
        Supersede(**{name: -1})


def test_validation() -> None:
    train = [(0, 0, 1, 0), (0, 0, 2, 1), (3, 0, 2, 1)]
    timeline = make_timeline(train, val=[(0, 0, 2, 1), (3, 0, 2, 1)], num_entities=4, num_relations=1, num_steps=3)
    lesson, evaluator, strategy = Lesson(timeline, 1), Evaluator(timeline, "val"), Supersede()
    metrics, _ = evaluator.evaluate(lesson.model, 1)
    assert strategy.validation_metric == "C@10 + RRD"
    assert strategy.validate(evaluator, lesson.model, 1) == pytest.approx(metrics["C@10"] + metrics["RRD"])
    assert math.isnan(strategy.validate(evaluator, lesson.model, 2))  # no quads
    nothing_deleted = make_timeline(train[:1], val=train[:1], num_entities=4, num_relations=1, num_steps=3)
    evaluator = Evaluator(nothing_deleted, "val")
    assert strategy.validate(evaluator, lesson.model, 0) == evaluator.current(lesson.model, 0)
