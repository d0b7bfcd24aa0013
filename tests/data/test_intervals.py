import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import Fact, count_bins, expand, rows_of
from timelines import facts_tensor

from tkg_incremental.data import FactTable, LazyQuads, bin_by_count
from tkg_incremental.data.intervals import merge_intervals, one_step_facts, sort_quads, subtract_intervals


@given(st.lists(st.integers(1900, 1930), min_size=1, max_size=80), st.integers(0, 10))
def test_bin_by_count(years: list[int], threshold: int) -> None:
    axis = bin_by_count(years, threshold)
    assert list(axis.last) == count_bins(years, threshold)
    assert axis.first[0] == min(years)
    assert all(first == last + 1 for first, last in zip(axis.first[1:], axis.last[:-1], strict=True))


def test_a_bin_is_closed_when_the_count_exceeds_the_threshold() -> None:
    years = [1, 1, 2, 2, 3, 9]
    assert bin_by_count(years, threshold=1).last == (1, 2, 9)
    assert bin_by_count(years, threshold=2).last == (2, 9)
    assert bin_by_count(years, threshold=100).last == (9,)


def test_nothing_to_bin() -> None:
    with pytest.raises(ValueError, match="instants must not be empty"):
        bin_by_count([])


def test_merge_intervals() -> None:
    key = torch.tensor([1, 1, 1, 1, 2, 5])
    first, last = torch.tensor([0, 1, 3, 9, 3, 0]), torch.tensor([4, 2, 5, 9, 3, 7])
    begins, merged = merge_intervals(key, first, last)
    assert first[begins].tolist() == [0, 9, 3, 0]
    assert merged.tolist() == [5, 9, 3, 7]
    begins, merged = merge_intervals(key[:0], first[:0], last[:0])
    assert len(begins) == len(merged) == 0


def test_sort_quads() -> None:
    quads = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 1], [2, 0, 0, 0], [0, 1, 0, 1]])
    assert sort_quads(quads).tolist() == [[2, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1]]
    assert sort_quads(quads[:0]).shape == (0, 4)


def test_one_step_facts() -> None:
    assert one_step_facts(torch.tensor([[3, 1, 2, 5]])).tolist() == [[3, 1, 2, 5, 5]]


held = st.tuples(*[st.integers(0, 1)] * 3, st.integers(0, 8), st.integers(0, 8)).map(
    lambda drawn: (*drawn[:3], *sorted(drawn[3:]))
)


@given(st.lists(held, max_size=8), st.lists(held, max_size=8))
def test_subtract_intervals(facts: list[Fact], taken: list[Fact]) -> None:
    left = subtract_intervals(facts_tensor(facts), FactTable(facts_tensor(taken), 2, 2, 9).merged().facts)
    gone = set(expand(taken))
    assert rows_of(LazyQuads(left).quads()) == [row for row in expand(facts) if row not in gone]
    assert bool((left[:, 3] <= left[:, 4]).all())
