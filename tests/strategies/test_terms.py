"""Every term of the loss against the paper's equation, given the same negatives."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, model_for, step_for
from oracles import Draw, Row, ScoreOracle, TimelineOracle, deletion, distillation, drift, link, rows_of
from recorder import Recorder
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies import Drift, Forget, Link, Losses, Replay, Step, Term

few = settings(max_examples=25)
models = st.sampled_from(MODELS)
strides = st.sampled_from([1, 1, 2, 3])


def some_rows(line: TimelineOracle) -> list[Row]:
    rows = sorted(set(line.train))
    assume(rows)
    return rows


@few
@given(timelines(), models, st.integers(1, 8), st.booleans(), st.integers(0, 3), strides)
def test_link_with_sampled_negatives(
    drawn: tuple[Timeline, TimelineOracle], name: str, negatives: int, shared: bool, seed: int, stride: int
) -> None:
    timeline, line = drawn
    rows, step = some_rows(line), step_for(timeline, timeline.num_steps - 1, name, seed, stride)
    recorder = Recorder(line, step)
    found = recorder.losses(Link(negatives=negatives, shared=shared, weight=0.3), rows)
    assert sorted(draw.row for draw in recorder.draws) == sorted(rows * 2)
    for draw in recorder.draws:
        assert set(draw.negatives) <= line.known_entities(draw.row[3]) & set(step.negatives.pool.order.tolist())
        assert shared or len(draw.negatives) in (0, negatives)
    assert found == {"CE": pytest.approx(0.3 * link(ScoreOracle(step.model), recorder.draws))}


@few
@given(timelines(), models)
def test_link_with_all_negatives(drawn: tuple[Timeline, TimelineOracle], name: str) -> None:
    timeline, line = drawn
    rows, step = some_rows(line), step_for(timeline, timeline.num_steps - 1, name)
    draws = [
        Draw(row, side, sorted(line.known_entities(row[3]) - line.answers(side, "train", row)))
        for row in rows
        for side in SIDES
    ]
    found = Recorder(line, step).losses(Link(negatives="all", weight=2.0, name="RCE"), rows)
    assert found == {"RCE": pytest.approx(2 * link(ScoreOracle(step.model), draws))}


def test_rows_that_share_negatives_share_them_by_time() -> None:
    train = [(e, 0, (e + 1) % 30, t) for t in range(2) for e in range(30)]
    timeline = make_timeline(train, num_entities=30, num_relations=1, num_steps=2)
    line = TimelineOracle(train, [], [], 30, 2)
    recorder = Recorder(line, step_for(timeline, 1))
    recorder.losses(Link(negatives=5, shared=True), train)
    for time in range(2):
        drawn = {entity for draw in recorder.draws if draw.row[3] == time for entity in draw.negatives}
        assert len(drawn) <= 5
    recorder.draws.clear()
    recorder.losses(Link(negatives=5), train)
    assert len({entity for draw in recorder.draws for entity in draw.negatives}) > 10


@few
@given(timelines(), models, st.integers(1, 6), st.booleans(), strides)
def test_replay(drawn: tuple[Timeline, TimelineOracle], name: str, negatives: int, shared: bool, stride: int) -> None:
    timeline, line = drawn
    rows, step = some_rows(line), step_for(timeline, timeline.num_steps - 1, name, stride=stride)
    recorder = Recorder(line, step)
    term = Replay(negatives=negatives, shared=shared, weight=0.7, distill=0.2)
    found = recorder.losses(term, rows)
    score, previous = ScoreOracle(step.model), ScoreOracle(step.previous)
    assert found == {
        "RCE": pytest.approx(0.7 * link(score, recorder.draws)),
        "RKD": pytest.approx(0.2 * distillation(previous, score, recorder.draws), abs=1e-12),
    }
    assert found["RKD"] >= -1e-12


def test_replay_without_distillation_does_not_ask_the_previous_model() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    step.previous = None  # type: ignore[assignment]
    assert set(Replay(distill=0.0).losses(step, timeline.train.rows)) == {"RCE"}


def test_what_has_not_changed_is_not_distilled() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    step.previous = step.model.frozen_copy()
    loss = Replay().losses(step, timeline.train.rows)["RKD"]
    assert loss.item() == pytest.approx(0, abs=1e-12)
    gradients = torch.autograd.grad(loss, list(step.model.parameters()), allow_unused=True)
    assert all(gradient is None or gradient.abs().max() < 1e-12 for gradient in gradients)


def test_the_previous_model_does_not_learn() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    losses = {**Replay().losses(step, timeline.train.rows), **Drift().losses(step, timeline.train.rows[:0])}
    sum(losses.values()).backward()  # type: ignore[union-attr]
    assert all(parameter.grad is None for parameter in step.previous.parameters())
    assert all(parameter.grad is not None for parameter in step.model.parameters())


@few
@given(timelines(), models, st.integers(1, 4))
def test_forget(drawn: tuple[Timeline, TimelineOracle], name: str, window: int) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    step = step_for(timeline, time, name)
    rows = line.deleted(time, window)
    assume(rows)
    found = Recorder(line, step).losses(Forget(weight=0.5), rows)
    assert found == {"del": pytest.approx(0.5 * deletion(ScoreOracle(step.model), rows))}


def test_forgetting_facts_that_score_high() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    for parameter in step.model.parameters():
        parameter.data.fill_(40.0)
    score = ScoreOracle(step.model)((0, 0, 1, 1))
    assert score > 1000  # the sigmoid is 1 to the last bit: -log(1 - σ) must not be infinite
    assert Forget().losses(step, to_tensor([(0, 0, 1, 1)]))["del"].item() == pytest.approx(score)


@pytest.mark.parametrize("reduction", ["squares", "norm"])
@few
@given(drawn=timelines(), name=models, data=st.data())
def test_drift(reduction: Any, drawn: tuple[Timeline, TimelineOracle], name: str, data: st.DataObject) -> None:
    timeline, line = drawn
    time = data.draw(st.integers(min(1, line.num_steps - 1), line.num_steps - 1))
    step = step_for(timeline, time, name)
    now, before = ScoreOracle(step.model).tables, ScoreOracle(step.previous).tables
    known = {
        "entity": line.known_entities(max(time - 1, 0)),
        "relation": range(timeline.num_relations),
        "time": range(time),
    }
    axes = step.model.encoder.axes
    wanted = sum(drift(now[name], before[name], known[axes[name]], reduction == "squares") for name in now)
    found = Drift(weight=0.1, reduction=reduction).losses(step, to_tensor([]))
    assert {name: loss.item() for name, loss in found.items()} == {"TR": pytest.approx(0.1 * wanted)}


def test_drift_from_where_nothing_has_moved_has_a_gradient() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    step.previous = step.model.frozen_copy()
    for reduction in ("squares", "norm"):
        loss = Drift(reduction=reduction).losses(step, to_tensor([]))["TR"]  # type: ignore[arg-type]
        gradients = torch.autograd.grad(loss, list(step.model.parameters()))
        assert all(gradient.isfinite().all() and not gradient.any() for gradient in gradients)


def test_gradients_are_those_of_the_equations() -> None:
    """A finite difference of the oracle, for one number of each table."""
    train = [(0, 0, 1, 0), (1, 1, 2, 1), (2, 0, 3, 2), (0, 0, 1, 2)]
    timeline = make_timeline(train, num_entities=4, num_relations=2, num_steps=3)
    line = TimelineOracle(train, [], [], 4, 3)
    for name in ("DE complex", "HyTE"):
        step = step_for(timeline, 2, name)
        draws = [
            Draw(row, side, sorted(line.known_entities(row[3]) - line.answers(side, "train", row)))
            for row in train
            for side in SIDES
        ]
        checks: list[tuple[Term, Callable[[ScoreOracle], float]]] = [
            (Link(negatives="all"), lambda score, draws=draws: link(score, draws)),
            (Forget(), lambda score: deletion(score, train)),
        ]
        for term, oracle in checks:
            step.model.zero_grad()
            sum(term.losses(step, to_tensor(train)).values()).backward()  # type: ignore[union-attr]
            for table in step.model.parameters():
                values = []
                for nudge in (1e-6, -2e-6):
                    table.data[0, 0] += nudge
                    values.append(oracle(ScoreOracle(step.model)))
                table.data[0, 0] += 1e-6
                assert table.grad is not None
                assert table.grad[0, 0].item() == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_a_step_of_learning() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=3, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    assert isinstance(step, Step)
    assert step.timeline is timeline
    losses: Losses = Link(negatives=1).losses(step, step.snapshot.added)
    assert losses["CE"].requires_grad


def test_data_size_counts_negatives() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (1, 0, 2, 1)], num_entities=4, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    assert Link().examples(step, 7) == 7 * 1000
    assert Link(negatives="all").examples(step, 7) == 7 * 2 * 3
    assert Replay().examples(step, 7) == 7 * 100
    assert Forget().examples(step, 7) == 7


def test_arguments() -> None:
    with pytest.raises(ValueError, match=r"negatives must be 'all' or at least 1 \(got 0\)"):
        Link(negatives=0)
    with pytest.raises(ValueError, match=r"reduction must be 'squares' or 'norm' \(got 'mean'\)"):
        Drift(reduction="mean")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        Term().losses(step_for(make_timeline([], num_entities=1, num_relations=1, num_steps=1), 0), to_tensor([]))


def test_a_batch_of_any_order_is_the_same_loss() -> None:
    train = [(e, 0, (e + t) % 6, t) for t in range(3) for e in range(6)]
    timeline = make_timeline(train, num_entities=6, num_relations=1, num_steps=3)
    model = model_for(timeline)
    step = step_for(timeline, 2)
    step.model = model
    rows = to_tensor(train)
    shuffled = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    term = Link(negatives="all")
    assert term.losses(step, rows)["CE"].item() == pytest.approx(term.losses(step, shuffled)["CE"].item())
    assert rows_of(shuffled) == sorted(train)
