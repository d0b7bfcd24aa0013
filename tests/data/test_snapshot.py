import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import TimelineOracle, rows_of
from timelines import make_timeline, timelines

from tkg_incremental.data import Snapshot, Timeline

TRUMP, BIDEN, US, PRESIDENT = 0, 1, 2, 0


@pytest.fixture
def handover() -> Timeline:
    """The paper's example: one president until step 1, the next from step 1 on."""
    train = [
        (TRUMP, PRESIDENT, US, 0),
        (TRUMP, PRESIDENT, US, 1),
        (BIDEN, PRESIDENT, US, 1),
        (BIDEN, PRESIDENT, US, 2),
    ]
    return make_timeline(train, num_entities=3, num_relations=1, num_steps=4)


def test_handover(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 2)
    assert str(snapshot) == "Snapshot(time=2, label='2', train=1, val=0, test=0, added=0, removed=1)"
    assert snapshot.removed.tolist() == [[TRUMP, PRESIDENT, US, 1]]
    assert snapshot.deleted(window=1).tolist() == [[TRUMP, PRESIDENT, US, 2]]
    assert Snapshot(handover, 1).added.tolist() == [[BIDEN, PRESIDENT, US, 1]]
    assert Snapshot(handover, 0).added.tolist() == [[TRUMP, PRESIDENT, US, 0]]
    assert Snapshot(handover, 0).removed.shape == (0, 4)
    assert rows_of(Snapshot(handover, 3).deleted(2)) == [(TRUMP, PRESIDENT, US, 3), (BIDEN, PRESIDENT, US, 3)]


def test_it_is_a_pyg_graph(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 1)
    assert snapshot.edge_index.tolist() == [[TRUMP, BIDEN], [US, US]]
    assert snapshot.edge_type.tolist() == [PRESIDENT, PRESIDENT]
    assert snapshot.num_nodes == 3
    assert snapshot.validate()
    copied = copy.copy(snapshot)
    assert copied.time == 1
    assert torch.equal(copied.added, snapshot.added)


@given(timelines(), st.integers(1, 12))
def test_views(drawn: tuple[Timeline, TimelineOracle], window: int) -> None:
    timeline, oracle = drawn
    for step in range(oracle.num_steps):
        snapshot = Snapshot(timeline, step)
        for split in ("train", "val", "test"):
            assert rows_of(getattr(snapshot, split)) == sorted(row for row in getattr(oracle, split) if row[3] == step)
        assert rows_of(snapshot.current) == sorted((*triple, step) for triple in oracle.holding(step))
        assert rows_of(snapshot.added) == oracle.added(step)
        assert rows_of(snapshot.removed) == oracle.removed(step)
        assert rows_of(snapshot.deleted(window)) == oracle.deleted(step, window)
        assert rows_of(snapshot.replay(window)) == oracle.replay(step, window)
        assert rows_of(snapshot.turns(window)) == oracle.turns(step, window)
        assert set(snapshot.known_entities.tolist()) == oracle.known_entities(step)
        assert set(zip(*snapshot.edge_index.tolist(), snapshot.edge_type.tolist(), strict=True)) == {
            (head, tail, rel) for head, rel, tail in oracle.holding(step)
        }


@given(timelines())
def test_views_are_long_rows(drawn: tuple[Timeline, TimelineOracle]) -> None:
    snapshot = Snapshot(drawn[0], 0)
    past = (snapshot.deleted(), snapshot.replay(), snapshot.turns())
    for view in (snapshot.train, snapshot.added, snapshot.removed, *past):
        assert view.dtype == torch.long
        assert view.dim() == 2
        assert view.size(1) == 4


@pytest.mark.parametrize("window", [0, -3])
def test_windows_of_nothing(handover: Timeline, window: int) -> None:
    snapshot = Snapshot(handover, 2)
    for view in (snapshot.deleted, snapshot.replay, snapshot.turns):
        with pytest.raises(ValueError, match=rf"window must be at least 1 \(got {window}\)"):
            view(window)
