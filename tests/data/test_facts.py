import torch
from hypothesis import given
from oracles import TimelineOracle, rows_of
from timelines import timelines, to_tensor

from tkg_incremental.data import FactTable, Timeline

ROWS = [(1, 0, 0, 2), (0, 0, 1, 0), (0, 0, 1, 0), (0, 0, 1, 2), (0, 1, 0, 0)]


def test_sorted_by_time_then_triple() -> None:
    table = FactTable(to_tensor(ROWS), num_entities=2, num_relations=2, num_steps=4)
    assert str(table) == "FactTable(5 rows, 4 steps)"
    assert table.rows.tolist() == [[0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 2], [1, 0, 0, 2]]
    assert table.ptr == [0, 3, 3, 5, 5]
    assert (len(table.at(0)), len(table.at(1))) == (3, 0)


def test_sorting_again_changes_nothing() -> None:
    table = FactTable(to_tensor(ROWS), 2, 2, 4)
    again = FactTable(table.rows, 2, 2, 4)
    assert torch.equal(again.rows, table.rows)
    assert torch.equal(again.keys, table.keys)


def test_the_input_is_left_alone() -> None:
    rows = to_tensor(ROWS)
    table = FactTable(rows, 2, 2, 4)
    table.lapsed(1, 1)
    FactTable(table.rows, 2, 2, 4).lapsed(3, 2)
    assert rows.tolist() == [list(row) for row in ROWS]
    assert table.rows[:, 3].tolist() == [0, 0, 0, 2, 2]


def test_unique() -> None:
    table = FactTable(to_tensor(ROWS), 2, 2, 4).unique()
    assert len(table) == 4
    assert table.ptr == [0, 2, 2, 4, 4]
    assert table.unique() is table


@given(timelines())
def test_between(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    for first in range(-2, timeline.num_steps + 2):
        for last in range(-2, timeline.num_steps + 2):
            expected = sorted(row for row in oracle.train if first <= row[3] <= last)
            assert rows_of(timeline.train.between(first, last)) == expected


@given(timelines())
def test_unique_rows_keep_the_order(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    rows = timeline.observed.rows.tolist()
    assert [tuple(row) for row in rows] == sorted(set(oracle.train), key=lambda row: (row[3], row[:3]))
