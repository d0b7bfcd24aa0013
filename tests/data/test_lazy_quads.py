from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import Fact, expand, rows_of
from timelines import facts_tensor

from tkg_incremental.data import LazyQuads
from tkg_incremental.data.lazy_quads import sample_indices

fact = st.tuples(*[st.integers(0, 3)] * 3, st.integers(0, 6), st.integers(0, 6)).map(
    lambda drawn: (*drawn[:3], *sorted(drawn[3:]))
)
HUGE = facts_tensor([(0, 0, 1, 0, 10**12 - 1), (1, 0, 0, 7, 10**12 - 1)])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.lists(fact, max_size=12))
def test_one_row_per_step(facts: list[Fact]) -> None:
    rows = LazyQuads(facts_tensor(facts))
    expected = expand(facts)
    assert len(rows) == len(expected)
    assert [tuple(row) for row in rows.quads().tolist()] == sorted(expected, key=lambda row: (row[3], row[:3]))
    assert rows_of(rows.take(torch.arange(len(rows)))) == expected
    assert rows.take(torch.arange(0)).shape == (0, 4)


@given(st.lists(fact, max_size=12), st.integers(0, 30))
def test_sample(facts: list[Fact], size: int) -> None:
    rows = LazyQuads(facts_tensor(facts))
    drawn = Counter(rows_of(rows.sample(size, seeded())))
    assert drawn.total() == min(size, len(rows))
    assert drawn <= Counter(expand(facts))


def test_samples_are_uniform() -> None:
    rows = LazyQuads(facts_tensor([(0, 0, 0, 0, 0), (1, 0, 0, 0, 8), (2, 0, 0, 3, 4)]))
    generator = seeded()
    for size in (2, 6):  # row by row, and as a part of a permutation
        counts = Counter(row for _ in range(3000) for row in rows_of(rows.sample(size, generator)))
        assert len(counts) == 12
        expected = 3000 * size / 12
        assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_only_taken_rows_are_written() -> None:
    rows = LazyQuads(HUGE)
    assert len(rows) == 2 * 10**12 - 7
    assert rows.take(torch.tensor([0, 10**12 - 1, 10**12, len(rows) - 1])).tolist() == [
        [0, 0, 1, 0],
        [0, 0, 1, 10**12 - 1],
        [1, 0, 0, 7],
        [1, 0, 0, 10**12 - 1],
    ]
    assert len(rows.sample(100, seeded()).unique(dim=0)) == 100


@given(st.lists(fact, max_size=8), st.integers(1, 4))
def test_visits(facts: list[Fact], per_fact: int) -> None:
    visits = LazyQuads(facts_tensor(facts)).visits(per_fact)
    assert len(visits) == sum(min(per_fact, last - first + 1) for *_, first, last in facts)
    taken = visits.take(torch.arange(len(visits)), seeded())
    assert set(rows_of(taken)) <= set(expand(facts))
    short = [each for each in facts if each[4] - each[3] < per_fact]
    assert Counter(expand(short)) <= Counter(rows_of(taken))


def test_steps_of_visits_are_uniform() -> None:
    visits = LazyQuads(facts_tensor([(0, 0, 0, 2, 8)])).visits(3)
    generator = seeded()
    times = torch.cat([visits.take(torch.arange(3), generator)[:, 3] for _ in range(4000)])
    counts = torch.bincount(times)[2:]
    assert len(counts) == 7
    assert float((counts - 12000 / 7).abs().max()) < 5 * (12000 / 7) ** 0.5
    with pytest.raises(ValueError, match="randomly drawn steps"):
        visits.quads()
    with pytest.raises(ValueError, match=r"per_fact must be at least 1 \(got 0\)"):
        visits.visits(0)


def test_generator_decides() -> None:
    visits = LazyQuads(HUGE).visits(5)
    one, same, other = (visits.sample(4, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(("count", "size"), [(10, 0), (10, 2), (10, 9), (10**15, 1000)])
def test_sampled_indices_differ(count: int, size: int) -> None:
    drawn = sample_indices(count, size, seeded())
    assert len(drawn) == len(drawn.unique()) == size
    assert bool(((drawn >= 0) & (drawn < count)).all())


def test_repr() -> None:
    assert repr(LazyQuads(facts_tensor([(0, 0, 1, 2, 4)]))) == "LazyQuads(3 rows of 1 facts)"
