import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import TimelineOracle
from timelines import make_timeline, timelines

from tkg_incremental.data import Timeline
from tkg_incremental.sampling import Pool


@pytest.fixture
def graph() -> Timeline:
    """Two entities more at every step: 0 and 1 at first, then 2 and 3, …; 11 never comes."""
    train = [(2 * t, 0, 2 * t + 1, t) for t in range(5)]
    return make_timeline(train, num_entities=12, num_relations=1, num_steps=5)


def test_names(graph: Timeline) -> None:
    assert str(Pool(graph)) == "Pool(everybody)"
    assert str(Pool(graph, 5, 1)) == "Pool(3 of 12)"


def test_by_hand(graph: Timeline) -> None:
    pool = Pool(graph, 3, 1)
    assert pool.order.tolist() == [1, 4, 7, 10]
    assert pool.num_known.tolist() == [1, 1, 2, 3, 3]
    inside, columns = pool.among(torch.tensor([0, 1, 7, 8, 10]))
    assert inside.tolist() == [False, True, True, False, True]
    assert columns.tolist() == [0, 2, 3]
    assert not pool.is_everybody


@given(timelines(), st.data())
def test_members_known_at_a_step(drawn: tuple[Timeline, TimelineOracle], data: st.DataObject) -> None:
    timeline, oracle = drawn
    stride = data.draw(st.integers(1, 9))
    pool = Pool(timeline, stride, data.draw(st.integers(0, min(stride, timeline.num_entities) - 1)))
    members = set(timeline.order.tolist()[pool.start :: stride])
    for step, count in enumerate(pool.num_known.tolist()):
        assert set(pool.order[:count].tolist()) == members & oracle.known_entities(step)


@pytest.mark.parametrize(("size", "stride"), [(None, 1), (100, 1), (10, 1), (6, 1), (5, 2), (4, 2), (3, 3), (1, 10)])
def test_size(graph: Timeline, size: int | None, stride: int) -> None:
    assert Pool.draw(graph, 4, size, seed=0).stride == stride


def test_all_are_as_likely(graph: Timeline) -> None:
    pools = [Pool.draw(graph, 4, 3, seed) for seed in range(300)]
    assert {pool.start for pool in pools} == {0, 1, 2}
    for start in range(3):
        assert 70 < sum(pool.start == start for pool in pools) < 130
    assert Pool.draw(graph, 4, 3, seed=7).start == pools[7].start


def test_bad_start(graph: Timeline) -> None:
    with pytest.raises(ValueError, match=r"start must lie in 0 … 2 \(got 3\)"):
        Pool(graph, 3, 3)
    with pytest.raises(ValueError, match=r"start must lie in 0 … 11 \(got 12\)"):  # nobody would be a member
        Pool(graph, 20, 12)
