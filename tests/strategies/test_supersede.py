import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, step_for
from oracles import Row, ScoreOracle, TimelineOracle, rows_of, with_answer
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies import Contrast, Current, Drift, Link, Replay, Replayed, Successors, Supersede

few = settings(max_examples=25)
models = st.sampled_from(MODELS)


def softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def deleted_answers(line: TimelineOracle, row: Row, side: str, window: int) -> set[int]:
    """Train answers of the window before that are none now."""
    before = [line.answers(side, "train", (*row[:3], then)) for then in range(row[3] - window, row[3])]
    return set().union(*before) - line.answers(side, "train", row)


@few
@given(timelines(), models, st.integers(1, 4), st.integers(1, 3))
def test_contrast(drawn: tuple[Timeline, TimelineOracle], name: str, window: int, rivals: int) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    rows = [(*triple, time) for triple in sorted(line.holding(time))]
    assume(rows)
    step = step_for(timeline, time, name)
    score = ScoreOracle(step.model)
    least = most = 0.0
    for row in rows:
        for side in SIDES:
            # Some of them are drawn: the loss lies between that of the easiest alone and of the hardest alone.
            former = deleted_answers(line, row, side, window)
            above = [score(with_answer(row, side, entity)) - score(row) + math.log(rivals) for entity in former]
            least += softplus(min(above)) if above else 0
            most += softplus(max(above)) if above else 0
    found = Contrast(window=window, rivals=rivals, weight=2.0).losses(step, to_tensor(rows))["contrast"].item()
    assert 2 * least / len(rows) - 1e-9 <= found <= 2 * most / len(rows) + 1e-9


def test_contrast_by_hand() -> None:
    """Entity 1 was followed by 2 as what 0 leads to; 3 leads to 2 and to nothing before."""
    train = [(0, 0, 1, 0), (0, 0, 2, 1), (3, 0, 2, 1)]
    timeline = make_timeline(train, num_entities=4, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    score = ScoreOracle(step.model)
    rows = Successors(1).rows(step.snapshot, step.generator)
    assert rows.tolist() == [[0, 0, 2, 1]]
    found = Contrast(window=1, rivals=3).losses(step, rows)["contrast"].item()
    above = score((0, 0, 1, 1)) - score((0, 0, 2, 1))
    assert found == pytest.approx(math.log(1 + 3 * math.exp(above)))


def test_all_that_was_replaced_is_met() -> None:
    train = [(0, 0, entity, 0) for entity in range(1, 5)] + [(0, 0, 5, 1)]
    timeline = make_timeline(train, num_entities=6, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    sample = Contrast(window=1, rivals=200)._draw(step, to_tensor([(0, 0, 5, 1)]))
    tails, _ = timeline.order[sample.columns]
    assert set(tails.tolist()) == {1, 2, 3, 4}
    assert sample.absent is not None
    assert sample.absent.tolist() == [[False], [True]]  # nobody else led to 5 before


@given(timelines(), st.integers(1, 4), st.integers(0, 5))
def test_successors(drawn: tuple[Timeline, TimelineOracle], window: int, limit: int) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    wanted = [
        row
        for row in sorted((*triple, time) for triple in line.holding(time))
        if any(deleted_answers(line, row, side, window) for side in SIDES)
    ]
    snapshot, generator = Snapshot(timeline, time), torch.Generator().manual_seed(0)
    assert rows_of(Successors(window).rows(snapshot, generator)) == wanted
    some = rows_of(Successors(window, limit).rows(snapshot, generator))
    assert len(some) == min(limit, len(wanted))
    assert set(some) <= set(wanted)


def test_what_it_is_made_of() -> None:
    assert [type(term) for term in Supersede().terms] == [Link, Drift, Link, Contrast, Replay]
    least = Supersede(contrast=0, replay=None, current_negatives=0)
    assert [type(term) for term in least.terms] == [Link, Drift]
    _, drift, current, contrast, replay = Supersede(window=3, contrast=0.2, rivals=5, rce=0.3, rkd=0.4, drift=0.5).terms
    assert current == Link(Current(), 50, name="CE current")
    assert contrast == Contrast(Successors(3), 3, 5, 0.2)
    assert (drift.weight, replay.weight, replay.distill) == (0.5, 0.3, 0.4)  # type: ignore[attr-defined]
    assert Supersede(replay="turns", replay_window=7).terms[-1].view == Replayed(7, 6000, "turns")
    assert Supersede().name == "Supersede"
