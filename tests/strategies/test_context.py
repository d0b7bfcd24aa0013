import pytest
import torch
from drawing import draws_of, plain_logits
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import MODELS, Lesson
from oracles import TimelineOracle
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.strategies import Replay, TrainingContext
from tkg_incremental.strategies.context import is_known_before


@settings(max_examples=30)
@given(timelines(), st.integers(0, 6))
def test_rows_known_at_the_step_before(drawn: tuple[Timeline, TimelineOracle], time: int) -> None:
    timeline, line = drawn
    time = min(time, timeline.num_steps - 1)
    entities, steps = torch.arange(timeline.num_entities), torch.arange(timeline.num_steps)
    known = line.known_entities(max(time - 1, 0))
    assert is_known_before(timeline, time, "entity", entities).tolist() == [e in known for e in entities.tolist()]
    assert is_known_before(timeline, time, "time", steps).tolist() == [step < time for step in steps.tolist()]
    assert is_known_before(timeline, time, "relation", torch.arange(2)).tolist() == [True, True]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_logits_of_the_previous_model(name: str, stride: int, shared: bool) -> None:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    timeline = make_timeline(train, num_entities=6, num_relations=1, num_steps=3)
    lesson, term = Lesson(timeline, 2, name, stride=stride), Replay(negatives=9, shared=shared)
    batch = lesson.batch([term], [to_tensor(train)])
    encoded = lesson.model.encode(batch, timeline)
    lesson.context.terms = encoded
    assert encoded[0] is not None
    found = lesson.context.previous_logits(encoded[0])
    assert not found.requires_grad
    for row, draw in zip(found, draws_of(next(iter(batch))), strict=True):
        assert row[row.isfinite()].tolist() == pytest.approx(plain_logits(lesson.previous, draw).tolist())


def test_changes() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)
    lesson = Lesson(timeline, 1, "HyTE")
    assert isinstance(lesson.context, TrainingContext)
    tables, before = lesson.model.tables(), lesson.previous.tables()
    rows = {"entity": [0, 1], "relation": [0], "time": [0]}
    for change, (name, axis) in zip(lesson.context.changes(), lesson.model.axes.items(), strict=True):
        assert torch.equal(change, tables[name][rows[axis]] - before[name][rows[axis]])
        assert change.requires_grad


def test_the_previous_model_drops_nothing() -> None:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(5)]
    timeline = make_timeline(train, num_entities=6, num_relations=1, num_steps=3)
    lesson, term = Lesson(timeline, 2), Replay(negatives=9)
    lesson.previous.decoder.dropout = 0.9
    lesson.previous.train()
    encoded = lesson.model.encode(lesson.batch([term], [to_tensor(train)]), timeline)
    lesson.context.terms = encoded
    assert encoded[0] is not None
    one, other = (lesson.context.previous_logits(encoded[0]) for _ in range(2))
    assert torch.equal(one, other)
    assert lesson.previous.training  # as it was
