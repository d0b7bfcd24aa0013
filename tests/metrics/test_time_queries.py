import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import model_for
from oracles import RankOracle, ScoreOracle, TimelineOracle
from timelines import make_interval_timeline, timelines

from tkg_incremental.data import Timeline
from tkg_incremental.metrics import Evaluator, ae_iou, predicted_intervals, time_prediction, time_ranks
from tkg_incremental.ops.answers import FIRST, LAST

intervals = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda pair: (min(pair), max(pair)))


@given(intervals, intervals)
def test_ae_iou(true: tuple[int, int], predicted: tuple[int, int]) -> None:
    first, second = (set(range(low, high + 1)) for low, high in (true, predicted))
    hull = range(min(first | second), max(first | second) + 1)
    wanted = max(1, len(first & second)) / len(hull)
    assert float(ae_iou(torch.tensor([true]), torch.tensor([predicted]))) == pytest.approx(wanted)


def grow(scores: list[float], share: float) -> tuple[int, int]:
    """The interval of one fact, step by step."""
    weights = [math.exp(score) for score in scores]
    probability = [weight / sum(weights) for weight in weights]
    first = last = max(range(len(scores)), key=lambda step: (probability[step], -step))
    while sum(probability[first : last + 1]) < share and (first > 0 or last < len(scores) - 1):
        before = probability[first - 1] if first > 0 else -1
        after = probability[last + 1] if last < len(scores) - 1 else -1
        if before >= after:
            first -= 1
        else:
            last += 1
    return first, last


@given(st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(st.floats(-3, 3), min_size=n, max_size=n), min_size=1)))
def test_predicted_intervals(scores: list[list[float]]) -> None:
    table = torch.tensor(scores, dtype=torch.double)
    for share in (0.0, 0.453, 0.917):
        assert predicted_intervals(table, share).tolist() == [list(grow(row, share)) for row in scores]


@given(st.integers(1, 6), st.data())
def test_time_ranks(steps: int, data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.integers(-2, 2), min_size=steps, max_size=steps))
    truth = set(data.draw(st.lists(st.integers(0, steps - 1))))
    first = data.draw(st.integers(0, steps - 1))
    last = data.draw(st.integers(first, steps - 1))
    truth |= set(range(first, last + 1))
    best = max(scores[first : last + 1])
    others = [scores[step] for step in range(steps) if step not in truth]
    wanted = 1 + sum(score > best for score in others) + sum(score == best for score in others) / 2
    table = torch.tensor([[step in truth for step in range(steps)]])
    found = time_ranks(torch.tensor([scores], dtype=torch.float), torch.tensor([[0, 0, 0, first, last]]), table)
    assert float(found) == wanted


@settings(max_examples=20)
@given(timelines(), st.sampled_from(["DE complex", "HyTE"]))
def test_time_prediction(drawn: tuple[Timeline, TimelineOracle], name: str) -> None:
    timeline, line = drawn
    model, facts = model_for(timeline, name), timeline.test.facts
    score, ranks, overlaps = ScoreOracle(model), [], []
    for head, rel, tail, first, last in facts.tolist():
        scores = [score((head, rel, tail, step)) for step in range(line.num_steps)]
        best = max(scores[first : last + 1])
        others = [s for step, s in enumerate(scores) if (head, rel, tail, step) not in line.all]
        ranks.append(1 + sum(s > best for s in others))
        low, high = grow(scores, 0.5)
        common = min(last, high) - max(first, low) + 1
        overlaps.append(max(1, common) / (max(last, high) - min(first, low) + 1))
    found = time_prediction(model, timeline)
    if not ranks:
        assert all(math.isnan(value) for value in found.values())
        return
    assert found["time MRR"] == pytest.approx(100 * sum(1 / rank for rank in ranks) / len(ranks))
    assert found["time Hits@1"] == pytest.approx(100 * sum(rank == 1 for rank in ranks) / len(ranks))
    assert found["aeIOU"] == pytest.approx(100 * sum(overlaps) / len(overlaps), rel=1e-5)


@settings(max_examples=20)
@given(timelines())
def test_mrr_by_interval(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, line = drawn
    model = model_for(timeline)
    oracle, ranks = RankOracle(line, ScoreOracle(model)), {}
    for head, rel, tail, first, last in timeline.test.facts.tolist():
        sides = first == 0, last == line.num_steps - 1
        kind = {(False, False): "closed", (True, False): "open left", (False, True): "open right"}.get(sides, "open")
        for step in range(first, last + 1):
            for side, answer in (("tail", tail), ("head", head)):
                ranks.setdefault(f"MRR {kind}", []).append(oracle.rank((head, rel, tail, step), side, answer, True))
    wanted = {name: 100 * sum(1 / rank for rank in values) / len(values) for name, values in ranks.items()}
    assert Evaluator(timeline).mrr_by_interval(model) == pytest.approx(wanted)


def test_facts_that_hold_are_those_of_the_quads() -> None:
    timeline = make_interval_timeline(
        [(0, 0, 1, 0, 3), (2, 0, 1, 1, 1), (1, 0, 0, 2, 3)], num_entities=3, num_relations=1, num_steps=4
    )
    for step in range(4):
        facts, quads = timeline.train.holding(step), timeline.train.at(step)
        assert facts[:, :3].tolist() == quads[:, :3].tolist()
        assert bool(((facts[:, FIRST] <= step) & (step <= facts[:, LAST])).all())
    assert timeline.train.facts[:, FIRST].tolist() == [0, 1, 2]  # `at` has not written into the table
