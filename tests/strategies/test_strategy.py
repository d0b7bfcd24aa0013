import pytest
import torch
from learning import Lesson
from timelines import make_timeline
from torch import Tensor, nn

from tkg_incremental.data import Timeline
from tkg_incremental.metrics import Evaluator
from tkg_incremental.strategies import (
    N3,
    TIE,
    CrossEntropy,
    Current,
    DeletedFacts,
    Replay,
    ReplayOptions,
    Strategy,
    TemporalRegularization,
)


@pytest.fixture
def timeline() -> Timeline:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    return make_timeline(train, val=[(0, 0, 1, 2)], num_entities=6, num_relations=1, num_steps=3)


def test_repr() -> None:
    assert str(Strategy([DeletedFacts()], "Own")) == f"Own([\n  {DeletedFacts()!r},\n])"
    assert str(Strategy([])) == "Strategy([])"


def test_more_terms() -> None:
    terms = [DeletedFacts()]
    more = Strategy([CrossEntropy()], "FT") + terms
    assert type(more) is Strategy
    assert (more.name, more.terms) == ("FT+", (CrossEntropy(), DeletedFacts()))


def test_names_of_losses_must_differ() -> None:
    with pytest.raises(ValueError, match=r"losses must have different names \(got 'CE' 2 times in FT\)"):
        Strategy([CrossEntropy(), CrossEntropy(Current())], "FT")
    terms = [TemporalRegularization()]
    with pytest.raises(ValueError, match=r"losses must have different names \(got 'TR' 2 times in TIE\+\)"):
        TIE() + terms
    with pytest.raises(ValueError, match="'RKD' 2 times"):
        Strategy([Replay(), CrossEntropy(name="RKD")])
    assert len(Strategy([CrossEntropy(), CrossEntropy(Current(), name="CE current"), N3()]).terms) == 3


def test_losses_are_added(timeline: Timeline) -> None:
    lesson, strategy = Lesson(timeline, 2), TIE(negatives=3, replay=ReplayOptions(negatives=3))
    quads = [None if term.view is None else term.view.select(timeline, 2, lesson.generator) for term in strategy.terms]
    losses = lesson.losses(strategy.terms, lesson.batch(strategy.terms, quads))  # type: ignore[arg-type]
    assert set(losses) == {"CE", "TR", "del", "RCE", "RKD"}
    parameters: list[nn.Parameter] = list(lesson.model.parameters())
    each = [
        torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True) for loss in losses.values()
    ]
    strategy.backward(losses, parameters)
    for parameter, parts in zip(parameters, zip(*each, strict=True), strict=True):
        total: Tensor = sum(parts)  # type: ignore[assignment]
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, total)


def test_validation(timeline: Timeline) -> None:
    lesson, evaluator = Lesson(timeline, 2), Evaluator(timeline, "val")
    strategy = Strategy([])
    assert strategy.validation_metric == "C@10"
    assert strategy.validate(evaluator, lesson.model, 2) == evaluator.current(lesson.model, 2)
    assert not strategy.sees_future
