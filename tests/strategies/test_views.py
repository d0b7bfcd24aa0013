import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import TimelineOracle, rows_of
from timelines import timelines

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.strategies import Added, Current, Deleted, History, Replayed, View, Window


def test_names() -> None:
    assert str(Added()) == "Added()"
    assert str(Deleted(window=3)) == "Deleted(window=3, limit=10000)"
    assert str(Replayed(5, 50, "inverse")) == "Replayed(window=5, size=50, sampling='inverse')"
    assert Window(3) == Window(3) != Window(4)


@given(timelines(), st.integers(1, 5), st.integers(0, 30))
def test_rows(drawn: tuple[Timeline, TimelineOracle], window: int, limit: int) -> None:
    timeline, oracle = drawn
    generator = torch.Generator().manual_seed(0)
    for step in range(oracle.num_steps):

        def rows(view: View, step: int = step) -> list[tuple[int, int, int, int]]:
            return rows_of(view.rows(Snapshot(timeline, step), generator))

        assert rows(Added()) == oracle.added(step)
        assert rows(Current()) == sorted((*triple, step) for triple in oracle.holding(step))
        assert rows(History()) == sorted({row for row in oracle.train if row[3] <= step})
        assert rows(Window(window)) == oracle.replay(step, window)
        deleted, some = oracle.deleted(step, window), rows(Deleted(window, limit))
        assert rows(Deleted(window)) == deleted
        assert len(some) == min(limit, len(deleted))
        assert len(set(some)) == len(some)
        assert set(some) <= set(deleted)
        replayed = rows(Replayed(window, limit))
        assert len(replayed) == min(limit, len(oracle.replay(step, window)))
        assert set(replayed) <= set(oracle.replay(step, window))
        assert rows(Replayed("all", 10_000)) == oracle.replay(step, step)
        assert rows(Replayed("all", 10_000, "turns")) == oracle.turns(step, step)
        drawn_again = rows(Replayed(window, limit, "frequency"))
        assert len(drawn_again) == (limit if oracle.replay(step, window) else 0)
        assert set(drawn_again) <= set(oracle.replay(step, window))


def test_samplings_there_are() -> None:
    with pytest.raises(ValueError, match="sampling must be one of .* .got 'newest'."):
        Replayed(sampling="newest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="window must be 'all' or at least 1 .got 0."):
        Replayed(0)


def test_a_view_of_ones_own_must_say_its_rows() -> None:
    with pytest.raises(NotImplementedError):
        View().rows(Snapshot(), torch.Generator())
