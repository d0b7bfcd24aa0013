from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import TimelineOracle
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.ops.answers import SIDES, Side
from tkg_incremental.sampling import NegativeSampler, Pool


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def graph() -> Timeline:
    """Query (0, 0, ?, 1): entities 0 … 5 are known, of which 1, 2 and 5 are answers; 6 comes later."""
    train = [(0, 0, 1, 0), (3, 0, 4, 0), (0, 0, 1, 1), (0, 0, 2, 1), (0, 0, 5, 1), (6, 0, 0, 2)]
    return make_timeline(train, num_entities=7, num_relations=1, num_steps=3)


def test_name(graph: Timeline) -> None:
    line = "Timeline(7 entities, 1 relations, 3 steps, 6 / 0 / 0 rows)"
    assert str(NegativeSampler(graph)) == f"NegativeSampler({line}, Pool(everybody))"


def test_by_hand(graph: Timeline) -> None:
    columns, available = NegativeSampler(graph)(to_tensor([(0, 0, 1, 1), (0, 0, 1, 0)]), "tail", 200, seeded())
    assert available is None  # nobody is left without
    first, second = (set(graph.order[row].tolist()) for row in columns)
    assert first == {0, 3, 4}
    assert second == {0, 3, 4}  # at step 0 entities 2 and 5 are not known yet


@pytest.mark.parametrize("side", SIDES)
@settings(max_examples=60)
@given(drawn=timelines(), seed=st.integers(0, 9), stride=st.sampled_from([1, 1, 2, 3]))
def test_exactly_the_admissible(side: Side, drawn: tuple[Timeline, TimelineOracle], seed: int, stride: int) -> None:
    timeline, oracle = drawn
    rows = sorted(set(oracle.train)) + oracle.test  # also queries without an answer in train
    if not rows:
        return
    pool = Pool(timeline, stride, seed % min(stride, timeline.num_entities))
    columns, available = NegativeSampler(timeline, pool)(to_tensor(rows), side, 150, seeded(seed))
    everywhere = [True] * len(rows) if available is None else available.tolist()
    for row, found, there in zip(rows, columns, everywhere, strict=True):
        members = oracle.known_entities(row[3]) & set(pool.order.tolist())
        admissible = members - oracle.answers(side, "train", row)
        assert there == bool(admissible)
        if there:  # of at most six entities each is missed with a chance of (5/6)^150 ≈ 1e-12
            assert set(pool.order[found].tolist()) == admissible


def test_uniform(graph: Timeline) -> None:
    row = to_tensor([(0, 0, 1, 1)])
    columns, _ = NegativeSampler(graph)(row, "tail", 30_000, seeded())
    counts = Counter(graph.order[columns].flatten().tolist())
    chi_square = sum((count - 10_000) ** 2 / 10_000 for count in counts.values())
    assert len(counts) == 3
    assert chi_square < 13.8  # the 99.9% quantile with two degrees of freedom


def test_each_row_draws_on_its_own(graph: Timeline) -> None:
    columns, _ = NegativeSampler(graph)(to_tensor([(0, 0, 1, 1)] * 2), "tail", 50, seeded())
    assert not torch.equal(columns[0], columns[1])


def test_nobody_left() -> None:
    # All three known entities answer (0, 0, ?, 0); for (1, 0, ?, 0) there are two others, fewer than asked for.
    train = [(0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 2, 0), (1, 0, 0, 0)]
    timeline = make_timeline(train, num_entities=4, num_relations=1, num_steps=1)
    columns, available = NegativeSampler(timeline)(to_tensor([train[0], train[3]]), "tail", 9, seeded())
    assert available is not None
    assert available.tolist() == [False, True]
    assert available.device == timeline.device
    assert columns.shape == (2, 9)
    assert set(timeline.order[columns[1]].tolist()) == {1, 2}


def test_no_rows(graph: Timeline) -> None:
    columns, _ = NegativeSampler(graph)(to_tensor([]), "head", 3, seeded())
    assert columns.shape == (0, 3)


def test_drawn_into_a_part_of_a_tensor(graph: Timeline) -> None:
    whole = torch.full((9, 4), -1)
    columns, _ = NegativeSampler(graph)(graph.train.rows, "head", 4, seeded(), out=whole[2:8])
    assert columns.data_ptr() == whole[2:].data_ptr()
    assert torch.equal(columns, NegativeSampler(graph)(graph.train.rows, "head", 4, seeded())[0])
    assert (whole[[0, 1, 8]] == -1).all()


def test_generators(graph: Timeline) -> None:
    sampler, rows = NegativeSampler(graph), graph.train.rows
    first, same, other = (sampler(rows, "head", 20, seeded(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    before = torch.get_rng_state()
    sampler(rows, "head", 20, seeded())
    assert torch.equal(torch.get_rng_state(), before)


def test_device_and_type_of_the_input(graph: Timeline) -> None:
    columns, _ = NegativeSampler(graph)(graph.train.rows, "tail", 2, seeded())
    assert columns.device == graph.device
    assert columns.dtype == torch.long


def test_asking_for_nothing(graph: Timeline) -> None:
    with pytest.raises(ValueError, match=r"count must be at least 1 \(got 0\)"):
        NegativeSampler(graph)(graph.train.rows, "tail", 0)
