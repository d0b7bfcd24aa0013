import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tkg_incremental.ops.keys import find, find_all, lexsort, pack, segment_arange

numbers = st.lists(st.integers(-5, 5), max_size=20)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=30))
def test_keys_sort_like_rows(rows: list[tuple[int, int, int]]) -> None:
    keys = pack(list(torch.tensor(rows).unbind(1)), [4, 5, 3]).tolist()
    assert len(set(keys)) == len(set(rows))
    assert [row for _, row in sorted(zip(keys, rows, strict=True))] == sorted(rows)


def test_a_key_that_does_not_fit() -> None:
    column = torch.zeros(1, dtype=torch.long)
    largest = 2**31 - 1
    assert pack([column + largest, column + largest, column], [2**31, 2**31, 1]).item() == 2**62 - 1
    with pytest.raises(OverflowError, match="4294967296 × 4294967296 values does not fit into 63 bits"):
        pack([column, column], [2**32, 2**32])


@pytest.mark.parametrize("scale", [1, 2**40])  # as one number, and as two sorts
@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30))
def test_lexsort(scale: int, pairs: list[tuple[int, int]]) -> None:
    columns = torch.tensor(pairs, dtype=torch.long).view(-1, 2) * scale
    order = lexsort(columns[:, 0], columns[:, 1]).tolist()
    assert order == sorted(range(len(pairs)), key=lambda index: pairs[index])  # both are stable


@given(numbers, numbers)
def test_find(known: list[int], asked: list[int]) -> None:
    keys = torch.tensor(sorted(known), dtype=torch.long)
    place, is_there = find(keys, torch.tensor(asked, dtype=torch.long))
    assert is_there.tolist() == [value in known for value in asked]
    assert keys[place[is_there]].tolist() == [value for value in asked if value in known]
    assert all(0 <= at < max(1, len(known)) for at in place.tolist())


@given(numbers, numbers)
def test_find_all(known: list[int], asked: list[int]) -> None:
    keys = sorted(known)
    which, place = find_all(torch.tensor(keys, dtype=torch.long), torch.tensor(asked, dtype=torch.long))
    expected = [(i, at) for i, value in enumerate(asked) for at, key in enumerate(keys) if key == value]
    assert list(zip(which.tolist(), place.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 4), max_size=10))
def test_segment_arange(counts: list[int]) -> None:
    expected = [inside for count in counts for inside in range(count)]
    assert segment_arange(torch.tensor(counts, dtype=torch.long)).tolist() == expected
