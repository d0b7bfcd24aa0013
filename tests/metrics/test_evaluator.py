import math
import threading
from concurrent.futures import ThreadPoolExecutor
from math import nan

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import model_for
from oracles import RankOracle, ScoreOracle, TimelineOracle
from timelines import make_interval_timeline, make_timeline, timelines
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.metrics import Evaluator, StepRanks
from tkg_incremental.metrics.evaluator import past_steps
from tkg_incremental.models import DE, HyTE, Static, TKGModel
from tkg_incremental.ops import ranking
from tkg_incremental.ops.answers import Side

few = settings(max_examples=30)


@torch.no_grad()
def model_of_ties(timeline: Timeline, name: str) -> TKGModel:
    """A model whose numbers are small integers: its scores tie often, and exactly."""
    model = model_for(timeline, name)
    generator = torch.Generator().manual_seed(0)
    for table in model.parameters():
        table.copy_(torch.randint(-1, 2, table.shape, generator=generator))
    return model


MODELS = st.sampled_from(["Static complex", "Static distmult", "Static transe"])


def approx(value: float) -> object:
    return pytest.approx(value, nan_ok=True)


@few
@given(timelines(), MODELS, st.integers(1, 4), st.sampled_from([1, 20, 1 << 21]), st.booleans())
def test_ranks(
    drawn: tuple[Timeline, TimelineOracle], name: str, window: int, scores_at_a_time: int, exclude: bool
) -> None:
    timeline, line = drawn
    model = model_of_ties(timeline, name)
    evaluator = Evaluator(timeline, window=window, exclude_ended=exclude)
    oracle = RankOracle(line, ScoreOracle(model), window=window, exclude_ended=exclude)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_SCORES_AT_A_TIME", scores_at_a_time)
        found = [evaluator.rank(model, step, deleted=True) for step in range(line.num_steps)]
    for step, ranks in enumerate(found):
        if not oracle.rows(step):
            assert ranks is None
            continue
        assert isinstance(ranks, StepRanks)
        assert ranks.filtered.tolist() == oracle.own_ranks(step, filtered=True)
        assert ranks.raw.tolist() == oracle.own_ranks(step, filtered=False)
        deleted = [
            sorted(oracle.rank(row, side, entity, False) for entity in oracle.deleted_answers(row, side))
            for row, side in oracle.questions(step)
        ]
        by_row: list[list[float]] = [[] for _ in deleted]
        for row, rank in zip(ranks.deleted_row.tolist(), ranks.deleted.tolist(), strict=True):
            by_row[row].append(rank)
        assert [sorted(row) for row in by_row] == deleted


def check_metrics(model: TKGModel, timeline: Timeline, line: TimelineOracle, split: str, window: int) -> None:
    for per_query, first, repeats in ((False, 0, True), (True, 1, False)):
        exclude = per_query
        oracle = RankOracle(line, ScoreOracle(model), split, window, repeats, exclude_ended=exclude)
        evaluator = Evaluator(timeline, split, window, per_query, first, repeats, exclude_ended=exclude)
        for step in range(line.num_steps):
            metrics, alpha = evaluator.evaluate(model, step)
            assert alpha == {j: approx(oracle.hits(j)) for j in range(step + 1) if oracle.rows(j)}
            assert metrics["A@10"] == approx(oracle.average(step, first))
            assert metrics["A@10 incremental"] == approx(oracle.average(step, timeline.base_step))
            assert evaluator.current(model, step, k=2) == approx(oracle.hits(step, 2))
            if not oracle.rows(step):
                assert set(metrics) == {"A@10", "A@10 incremental"}
                continue
            assert metrics["C@10"] == approx(oracle.hits(step))
            assert metrics.get("C@10 new entities", nan) == approx(oracle.new_entity_hits(step, timeline.base_step))
            assert metrics["Hits@1"] == approx(oracle.hits(step, 1))
            assert metrics["Hits@3"] == approx(oracle.hits(step, 3))
            assert metrics["MRR"] == approx(oracle.mrr(step))
            assert metrics["MR"] == approx(sum(ranks := oracle.own_ranks(step, True)) / len(ranks))
            assert metrics["raw C@10"] == approx(oracle.hits(step, filtered=False))
            assert metrics["raw MRR"] == approx(oracle.mrr(step, filtered=False))
            assert metrics["DF@10"] == approx(oracle.deleted_hits(step, per_query))
            assert metrics["RRD"] == approx(oracle.reciprocal_rank_difference(step))


@few
@given(timelines(), MODELS, st.sampled_from(["test", "val"]), st.integers(1, 4))
def test_metrics_with_ties(drawn: tuple[Timeline, TimelineOracle], name: str, split: str, window: int) -> None:
    timeline, line = drawn
    check_metrics(model_of_ties(timeline, name), timeline, line, split, window)


@few
@given(timelines(), st.sampled_from(["DE complex", "DE transe", "HyTE"]), st.integers(0, 5))
def test_metrics_of_models_in_time(drawn: tuple[Timeline, TimelineOracle], name: str, seed: int) -> None:
    timeline, line = drawn
    check_metrics(model_for(timeline, name, seed), timeline, line, "test", 10)


def test_more_than_ten_candidates() -> None:
    # Hits@10 and DF@10 say nothing on graphs of at most six entities: here 25, in a chain of changing facts.
    train = [(e, 0, (e * 7 + t) % 25, t) for t in range(4) for e in range(25)]
    test = [(e, 0, (e * 3 + t) % 25, t) for t in range(4) for e in range(0, 25, 4)]
    timeline = make_timeline(train, [], test, num_entities=25, num_relations=1, num_steps=4)
    line = TimelineOracle(train, [], test, 25, 4)
    for name in ("DE complex", "HyTE"):
        check_metrics(model_for(timeline, name), timeline, line, "test", 2)
    metrics, _ = Evaluator(timeline).evaluate(model_for(timeline), 3)
    assert 0 < metrics["DF@10"] < 100
    assert 0 < metrics["C@10"] < 100


def test_pooled_hits() -> None:
    train = [(e, 0, (e + t) % 12, t) for t in range(3) for e in range(12)]
    test = [(0, 0, 5, 0), (1, 0, 2, 2), (2, 0, 2, 2), (3, 0, 2, 2)]
    timeline = make_timeline(train, [], test, num_entities=12, num_relations=1, num_steps=3)
    model = model_for(timeline)
    oracle = RankOracle(TimelineOracle(train, [], test, 12, 3), ScoreOracle(model))
    ranks = [rank for step in range(3) for rank in oracle.own_ranks(step, True)]
    assert len(ranks) == 8
    found = Evaluator(timeline).hits(model, 0, 2, k=4)
    assert found == pytest.approx(100 * sum(rank <= 4 for rank in ranks) / 8)  # rows weigh alike, not steps
    assert math.isnan(Evaluator(timeline).hits(model, 1, 1))
    assert math.isnan(Evaluator(timeline).current(model, 1))
    # Half of the steps are left out if they have more than `max_quads` quads, and none at exactly as many.
    assert Evaluator(timeline).hits(model, 1, 2, k=4, max_quads=3) == Evaluator(timeline).hits(model, 1, 2, k=4)
    assert math.isnan(Evaluator(timeline).hits(model, 1, 2, k=4, max_quads=2))


@few
@given(timelines(), st.sampled_from(["known", "all"]))
def test_link_prediction(drawn: tuple[Timeline, TimelineOracle], candidates: str) -> None:
    timeline, line = drawn
    model = model_of_ties(timeline, "Static complex")
    oracle = RankOracle(line, ScoreOracle(model), candidates=candidates)
    for first, last in ((0, None), (1, 2)):
        found = Evaluator(timeline).link_prediction(model, first, last, candidates=candidates)  # type: ignore[arg-type]
        expected = oracle.link_prediction(first, line.num_steps - 1 if last is None else last)
        if candidates == "all" and last is not None:
            assert Evaluator(timeline).reciprocal_rank(model, first, last) == approx(expected["MRR"])
        assert found == {name: approx(value) for name, value in expected.items()}


@pytest.mark.parametrize(("name", "times"), [("Static complex", 1), ("DE complex", 3)])
def test_static_entities_are_encoded_once(name: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quads = [(e, 0, (e + t) % 4, t) for t in range(3) for e in range(4)]
    timeline = make_timeline(quads, [], quads, num_entities=4, num_relations=1, num_steps=3)
    model, asked = model_for(timeline, name), []
    encode = model.candidate_vectors

    def counted(entities: Tensor, time: int) -> Tensor:
        asked.append(time)
        return encode(entities, time)

    monkeypatch.setattr(model, "candidate_vectors", counted)
    Evaluator(timeline).link_prediction(model)
    assert len(asked) == times


def test_other_candidates() -> None:
    timeline = make_timeline([], [], [(0, 0, 0, 0)], num_entities=1, num_relations=1, num_steps=1)
    with pytest.raises(ValueError, match="candidates must be 'known' or 'all'"):
        Evaluator(timeline).link_prediction(model_for(timeline), candidates="some")  # type: ignore[arg-type]


@given(st.integers(0, 400), st.integers(1, 30))
def test_past_steps(step: int, limit: int) -> None:
    steps = past_steps(step, limit)
    assert len(steps) <= limit
    assert list(past_steps(step)) == list(range(step))
    if step <= limit:
        assert list(steps) == list(range(step))
    elif limit > 1:
        assert len(steps) > limit / 2 - 1  # no fewer than needed
    # What is sampled later was sampled before, unless it is new.
    assert {j for j in past_steps(step + 7, limit) if j < step} <= set(steps)


def test_alpha_on_a_sample_of_the_past() -> None:
    facts = [(e, 0, (e * 5 + 1) % 12, 0, 39) for e in range(12)]
    timeline = make_interval_timeline(facts, [], facts[::3], num_entities=12, num_relations=1, num_steps=40)
    model = model_for(timeline)
    whole = Evaluator(timeline, max_past_steps=None).evaluate(model, 30)[1]
    sampled = Evaluator(timeline, max_past_steps=5).evaluate(model, 30)[1]
    assert list(whole) == list(range(31))
    assert sampled == {step: whole[step] for step in (0, 8, 16, 24, 30)}
    with pytest.raises(ValueError, match=r"max_past_steps must be at least 1 or None \(got 0\)"):
        Evaluator(timeline, max_past_steps=0)


@pytest.mark.parametrize("exclude_ended", [False, True])
@pytest.mark.parametrize("kind", [DE, HyTE])
def test_hits_when_the_first_candidates_show_that_an_answer_ranks_low(
    kind: type[TKGModel], exclude_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = SyntheticTKG(num_entities=100, num_steps=10)
    model, evaluator = kind.from_dataset(dataset, 8), Evaluator(dataset.timeline, exclude_ended=exclude_ended)
    found = []
    for first in (1 << 10, 20, 3):
        monkeypatch.setattr(ranking, "_SCREEN", first)
        found.append(
            (repr(evaluator.evaluate(model, 9)), evaluator.hits(model, 0, 9, k=3), evaluator.current(model, 9))
        )
    assert found[0] == found[1] == found[2]


def test_the_mode_of_the_model_is_restored() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], [], [(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=1)
    modes = []

    class Spy(Static):
        def query_vectors(self, quads: torch.Tensor, side: Side) -> torch.Tensor:
            modes.append(self.training)
            return super().query_vectors(quads, side)

    model = Spy(2, 1, 1, 4)
    for training in (True, False):
        model.train(training)
        model.decoder.eval()
        Evaluator(timeline).current(model, 0)
        assert model.training is training
        assert not model.decoder.training
    assert modes == [False] * 4


class Threads(Communicator):
    """One of several threads in the place of processes."""

    def __init__(self, rank: int, barrier: threading.Barrier, shared: list[torch.Tensor]) -> None:
        self.rank, self.size, self._barrier, self._shared = rank, barrier.parties, barrier, shared

    def gather(self, values: torch.Tensor) -> list[torch.Tensor]:
        self._shared[self.rank] = values
        self._barrier.wait(60)
        gathered = list(self._shared)
        self._barrier.wait(60)
        return gathered


@pytest.mark.parametrize("sharded", [True, False])
def test_divided_among_processes(sharded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [(e, 0, (e * 5 + 1) % 12, e % 3, 8) for e in range(12)]
    timeline = make_interval_timeline(facts, [], facts[::3], num_entities=12, num_relations=1, num_steps=9)
    monkeypatch.setattr(ranking, "_SCORES_AT_A_TIME", 20)  # several products, so that there is something to divide
    monkeypatch.setattr(ranking, "_SCREEN", 2)

    timeline.answers("head"), timeline.answers("tail")  # made before the threads start

    def results(communicator: Communicator) -> tuple[object, ...]:
        model, evaluator = model_for(timeline), Evaluator(timeline, communicator=communicator)
        model.is_sharded = sharded  # the processes rank every step together, instead of different steps
        metrics, alpha = evaluator.evaluate(model, 8)
        return metrics, alpha, evaluator.link_prediction(model), evaluator.hits(model, 2, 5, k=3)

    barrier, shared = threading.Barrier(2), [torch.empty(0)] * 2
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda rank: results(Threads(rank, barrier, shared)), range(2)))
    assert repr(found[0]) == repr(found[1]) == repr(results(LOCAL))  # the same bits


def test_deleted_answers_come_from_any_split_of_the_window() -> None:
    """The query (0, 0, ?, 3): 1 was true in train, 2 in validation, 3 in test; 4 too long ago; 5 still is."""
    train = [(0, 0, 1, 2), (0, 0, 5, 2), (0, 0, 5, 3), (0, 0, 4, 0)]
    val, test = [(0, 0, 2, 1)], [(0, 0, 3, 1), (0, 0, 6, 3)]
    timeline = make_timeline(train, val, test, num_entities=7, num_relations=1, num_steps=4)
    model = model_of_ties(timeline, "Static distmult")
    ranks = Evaluator(timeline, window=2).rank(model, 3, deleted=True)
    assert ranks is not None
    assert (ranks.deleted_row == 0).sum() == 3
    ranks = Evaluator(timeline, window=3).rank(model, 3, deleted=True)
    assert ranks is not None
    assert (ranks.deleted_row == 0).sum() == 4


def test_name() -> None:
    timeline = make_timeline([], num_entities=1, num_relations=1, num_steps=1)
    assert str(Evaluator(timeline, "val", window=3)) == "Evaluator(val, window=3, per_query=False)"
    with pytest.raises(ValueError, match="split must be one of"):
        Evaluator(timeline, "valid")
