import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning import MODELS, step_for
from oracles import ScoreOracle, TimelineOracle, rows_of, with_answer
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies import Lapse, Supersede, Unreplaced

few = settings(max_examples=25)


def over_and_unreplaced(line: TimelineOracle, time: int, window: int) -> list[tuple[int, int, int, int]]:
    before = set().union(*(line.holding(then) for then in range(time - window, time)))
    rows = sorted((*triple, time) for triple in before - line.holding(time))
    return [row for row in rows if not all(line.answers(side, "train", row) for side in SIDES)]


@given(timelines(), st.integers(1, 4), st.integers(0, 5))
def test_unreplaced(drawn: tuple[Timeline, TimelineOracle], window: int, limit: int) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    wanted = over_and_unreplaced(line, time, window)
    snapshot, generator = Snapshot(timeline, time), torch.Generator().manual_seed(0)
    assert rows_of(Unreplaced(window).rows(snapshot, generator)) == wanted
    some = rows_of(Unreplaced(window, limit).rows(snapshot, generator))
    assert len(some) == min(limit, len(wanted))
    assert set(some) <= set(wanted)


@few
@given(timelines(), st.sampled_from(MODELS), st.integers(1, 4))
def test_between_the_weakest_and_the_strongest_negatives(
    drawn: tuple[Timeline, TimelineOracle], name: str, count: int
) -> None:
    timeline, line = drawn
    time = timeline.num_steps - 1
    rows = over_and_unreplaced(line, time, 3)
    assume(rows)
    step = step_for(timeline, time, name)
    score = ScoreOracle(step.model)
    least = most = 0.0
    for row in rows:
        for side in SIDES:
            if not line.answers(side, "train", row):
                # Nobody is an answer now, so that anybody known may be drawn, any number of times.
                scores = [score(with_answer(row, side, entity)) for entity in line.known_entities(time)]
                least += math.log1p(math.exp(score(row) - max(scores)) / count)
                most += math.log1p(math.exp(score(row) - min(scores)) / count)
    found = Lapse(negatives=count, weight=2.0).losses(step, to_tensor(rows))["lapse"].item()
    assert 2 * least / len(rows) - 1e-6 <= found <= 2 * most / len(rows) + 1e-6


def test_by_hand() -> None:
    """0 led to 1, and leads to nobody any more; 3 leads to 1 now, so that nothing is asked about who leads to 1."""
    train = [(0, 0, 1, 0), (3, 0, 1, 1)]
    timeline = make_timeline(train, num_entities=4, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    rows = Unreplaced(1).rows(step.snapshot, step.generator)
    assert rows.tolist() == [[0, 0, 1, 1]]
    scores = [ScoreOracle(step.model)((0, 0, entity, 1)) for entity in (0, 1, 3)]
    found = Lapse(negatives=20_000).losses(step, rows)["lapse"].item()
    # So many draws come near their expectation.
    mean = sum(math.exp(value) for value in scores) / 3
    assert found == pytest.approx(math.log1p(math.exp(scores[1]) / (20_000 * mean)), rel=0.05)


def test_learning_lowers_what_is_over() -> None:
    train = [(0, 0, 1, 0), (2, 0, 3, 0), (2, 0, 3, 1)]
    timeline = make_timeline(train, num_entities=4, num_relations=1, num_steps=2)
    step = step_for(timeline, 1)
    rows = to_tensor([(0, 0, 1, 1)])
    Lapse().losses(step, rows)["lapse"].backward()
    before = step.model(rows).item()
    with torch.no_grad():
        for parameter in step.model.parameters():
            if parameter.grad is not None:
                parameter -= 0.1 * parameter.grad
    assert step.model(rows).item() < before


def test_in_supersede() -> None:
    assert Supersede(window=3, lapse=2.0).terms[4] == Lapse(Unreplaced(3), 50, 2.0)
    assert Lapse().examples(None, 3) == 300  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"negatives must be at least 1 \(got 0\)"):
        Lapse(negatives=0)
