import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import Row, TimelineOracle, rows_of
from timelines import make_interval_timeline, make_timeline, timelines, to_tensor

from tkg_incremental.data import LazyQuads, Timeline
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.strategies import Added, Current, Deleted, Given, History, Replayed, Successors, View
from tkg_incremental.strategies.views import deleted_answers, has_no_answer

Drawn = tuple[Timeline, TimelineOracle]


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def select(view: View, timeline: Timeline, step: int) -> list[Row]:
    quads = view.select(timeline, step, seeded())
    return rows_of(quads.quads() if isinstance(quads, LazyQuads) else quads)


def test_repr() -> None:
    assert str(View()) == "View()"
    assert str(Added()) == "Added(repeats=1)"
    assert str(Given(to_tensor([(0, 0, 1, 0)]))) == "Given(1 quads)"
    assert str(Deleted(window=3)) == "Deleted(window=3, limit=10000, unreplaced=False)"
    assert str(Replayed(5, 50, "inverse")) == "Replayed(window=5, size=50, sampling='inverse')"
    assert Replayed(3) == Replayed(3) != Replayed(4)


@given(timelines(), st.integers(1, 5), st.integers(0, 30))
def test_quads(drawn: Drawn, window: int, limit: int) -> None:
    timeline, oracle = drawn
    for step in range(oracle.num_steps):
        current = sorted((*triple, step) for triple in oracle.holding(step))
        assert select(Added(), timeline, step) == oracle.added(step)
        assert select(Added(repeats=2), timeline, step) == sorted(oracle.added(step) * 2)
        assert select(Given(to_tensor(oracle.test)), timeline, step) == sorted(oracle.test)
        assert select(Current(), timeline, step) == current
        assert select(History(), timeline, step) == sorted({row for row in oracle.train if row[3] <= step})
        assert select(Replayed(window, None), timeline, step) == oracle.replay(step, window)
        deleted = oracle.deleted(step, window)
        assert select(Deleted(window), timeline, step) == deleted
        for view, everything in ((Deleted(window, limit), deleted), (Current(limit), current)):
            some = select(view, timeline, step)
            assert len(some) == min(limit, len(everything))
            assert len(set(some)) == len(some)
            assert set(some) <= set(everything)
        replayed = select(Replayed(window, limit), timeline, step)
        assert len(replayed) == min(limit, len(oracle.replay(step, window)))
        assert set(replayed) <= set(oracle.replay(step, window))
        assert select(Replayed("all", 10_000), timeline, step) == oracle.replay(step, step)
        assert select(Replayed("all", 10_000, "boundary"), timeline, step) == oracle.boundary_facts(step, step)
        drawn_again = select(Replayed(window, limit, "frequency"), timeline, step)
        assert len(drawn_again) == (limit if oracle.replay(step, window) else 0)
        assert set(drawn_again) <= set(oracle.replay(step, window))


@given(timelines(), st.integers(1, 4), st.integers(0, 5))
def test_unreplaced(drawn: Drawn, window: int, limit: int) -> None:
    timeline, oracle = drawn
    time = timeline.num_steps - 1
    wanted = [
        quad for quad in oracle.deleted(time, window) if not all(oracle.answers(side, "train", quad) for side in SIDES)
    ]
    assert select(Deleted(window, unreplaced=True), timeline, time) == wanted
    some = select(Deleted(window, limit, unreplaced=True), timeline, time)
    assert len(some) == min(limit, len(wanted))
    assert set(some) <= set(wanted)


@given(timelines(), st.integers(1, 4), st.integers(0, 5))
def test_successors(drawn: Drawn, window: int, limit: int) -> None:
    timeline, oracle = drawn
    time = timeline.num_steps - 1

    def former(quad: Row, side: str) -> set[int]:
        before = [oracle.answers(side, "train", (*quad[:3], then)) for then in range(time - window, time)]
        return set().union(*before) - oracle.answers(side, "train", quad)

    current = sorted((*triple, time) for triple in oracle.holding(time))
    wanted = [quad for quad in current if any(former(quad, side) for side in SIDES)]
    assert select(Successors(window), timeline, time) == wanted
    some = select(Successors(window, limit), timeline, time)
    assert len(some) == min(limit, len(wanted))
    assert set(some) <= set(wanted)
    for side in SIDES:
        row, entity = deleted_answers(timeline, time, side, window).expand(to_tensor(current))
        found = [set[int]() for _ in current]
        for i, answer in zip(row.tolist(), entity.tolist(), strict=True):
            found[i].add(answer)
        assert found == [former(quad, side) for quad in current]


@given(timelines())
def test_queries_without_an_answer(drawn: Drawn) -> None:
    timeline, oracle = drawn
    quads = [*oracle.test, *oracle.train]
    found = has_no_answer(timeline, to_tensor(quads)).tolist()
    assert found == [[not oracle.answers(side, "train", quad) for quad in quads] for side in SIDES]


def test_history_by_visits() -> None:
    timeline = make_interval_timeline([(0, 0, 1, 0, 99)], num_entities=2, num_relations=1, num_steps=101)
    assert len(History().select(timeline, 100, seeded())) == 100
    quads = History(3).select(timeline, 89, seeded())
    assert len(quads) == 3
    times = quads.take(torch.arange(3), seeded())[:, 3].tolist()
    assert [time // 30 for time in times] == [0, 1, 2]  # one of each third of the interval up to the step


def test_the_limit_is_drawn_uniformly() -> None:
    timeline = make_timeline([(e, 0, 0, 0) for e in range(6)], num_entities=6, num_relations=1, num_steps=1)
    generator, counts = seeded(), torch.zeros(6)
    for _ in range(3000):
        counts[Current(2).select(timeline, 0, generator)[:, 0]] += 1
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5  # 99.9%, five degrees of freedom


def test_arguments() -> None:
    with pytest.raises(ValueError, match="sampling must be one of .* .got 'newest'."):
        Replayed(sampling="newest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="window must be 'all' or at least 1 .got 0."):
        Replayed(0)
    with pytest.raises(ValueError, match=r"repeats must be at least 1 \(got 0\)"):
        Added(0)
    with pytest.raises(ValueError, match=r"size must be None or at least 0 \(got -1\)"):
        Replayed(size=-1)


def test_a_view_must_select() -> None:
    timeline = make_timeline([], num_entities=1, num_relations=1, num_steps=1)
    with pytest.raises(NotImplementedError):
        View().select(timeline, 0, seeded())
