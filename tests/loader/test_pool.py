import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import TimelineOracle
from timelines import make_timeline, timelines

from tkg_incremental.data import Timeline
from tkg_incremental.loader import CandidatePool


@pytest.fixture
def graph() -> Timeline:
    """Two more entities at every step: 0 and 1, then 2 and 3, …; 10 and 11 never occur."""
    train = [(2 * t, 0, 2 * t + 1, t) for t in range(5)]
    return make_timeline(train, num_entities=12, num_relations=1, num_steps=5)


def test_repr(graph: Timeline) -> None:
    assert str(CandidatePool(graph)) == "CandidatePool(12 of 12)"
    assert str(CandidatePool(graph, 5, 1)) == "CandidatePool(3 of 12)"


def test_by_hand(graph: Timeline) -> None:
    pool = CandidatePool(graph, 3, 1)
    assert pool.entities.tolist() == [1, 4, 7, 10]
    assert pool.num_known.tolist() == [1, 1, 2, 3, 3]
    assert pool.position.tolist() == [-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1]
    assert not pool.has_all
    assert CandidatePool(graph).has_all


@given(timelines(), st.data())
def test_members_known_at_a_step(drawn: tuple[Timeline, TimelineOracle], data: st.DataObject) -> None:
    timeline, oracle = drawn
    stride = data.draw(st.integers(1, 9))
    pool = CandidatePool(timeline, stride, data.draw(st.integers(0, min(stride, timeline.num_entities) - 1)))
    members = timeline.order.tolist()[pool.start :: stride]
    assert pool.entities.tolist() == members
    assert torch.equal(pool.position[pool.entities], torch.arange(len(members)))
    assert int((pool.position < 0).sum()) == timeline.num_entities - len(members)
    for step, count in enumerate(pool.num_known.tolist()):
        assert set(pool.entities[:count].tolist()) == set(members) & oracle.known_entities(step)


@pytest.mark.parametrize(("size", "stride"), [(None, 1), (100, 1), (10, 1), (6, 1), (5, 2), (4, 2), (3, 3), (1, 10)])
def test_size(graph: Timeline, size: int | None, stride: int) -> None:
    pool = CandidatePool.draw(graph, 4, size, seed=0)
    assert pool.stride == stride
    if stride > 1:
        assert size is not None
        assert size <= int(pool.num_known[4]) < 2 * size or pool.start > 0


def test_members_are_equally_likely(graph: Timeline) -> None:
    pools = [CandidatePool.draw(graph, 4, 3, seed) for seed in range(300)]
    for start in range(3):
        assert 70 < sum(pool.start == start for pool in pools) < 130
    assert CandidatePool.draw(graph, 4, 3, seed=7).start == pools[7].start
    assert len({CandidatePool.draw(graph, time, 1, seed=7).start for time in range(5)}) > 1  # a new one at each step


def test_huge_seeds(graph: Timeline) -> None:
    seeds = [20261117195020, 2**32, 2**40, 2**62, 0]
    assert len({CandidatePool.draw(graph, 4, 1, seed).start for seed in seeds}) > 1


def test_start(graph: Timeline) -> None:
    with pytest.raises(ValueError, match=r"start must lie in 0 … 2 \(got 3\)"):
        CandidatePool(graph, 3, 3)
    with pytest.raises(ValueError, match=r"start must lie in 0 … 11 \(got 12\)"):  # there would be no member
        CandidatePool(graph, 20, 12)
