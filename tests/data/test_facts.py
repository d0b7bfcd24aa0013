import pytest
import torch
from hypothesis import given
from oracles import TimelineOracle, rows_of
from timelines import facts_tensor, timelines

from tkg_incremental.data import FactTable, Timeline

FACTS = [(1, 0, 0, 2, 2), (0, 0, 1, 0, 1), (0, 0, 1, 0, 1), (0, 0, 1, 2, 2), (0, 1, 0, 0, 0)]


@pytest.fixture
def table() -> FactTable:
    return FactTable(facts_tensor(FACTS), num_entities=2, num_relations=2, num_steps=4)


def by_time(row: tuple[int, ...]) -> tuple[int, ...]:
    return row[3], *row[:3]


def listed(quads: torch.Tensor) -> list[tuple[int, ...]]:
    return [tuple(quad) for quad in quads.tolist()]


def test_sorted_by_first_then_triple(table: FactTable) -> None:
    assert str(table) == "FactTable(5 facts, 7 rows, 4 steps)"
    expected = [(0, 0, 1, 0, 1), (0, 0, 1, 0, 1), (0, 1, 0, 0, 0), (0, 0, 1, 2, 2), (1, 0, 0, 2, 2)]
    assert listed(table.facts) == expected
    assert table.num_rows == 7
    assert [len(table.at(step)) for step in (-1, 0, 1, 2, 3, 4)] == [0, 3, 2, 2, 0, 0]


def test_sorting_again_changes_nothing(table: FactTable) -> None:
    again = FactTable(table.facts, 2, 2, 4)
    assert again.facts is table.facts


def test_views_do_not_change_the_table(table: FactTable) -> None:
    merged = table.merged()
    before = merged.facts.clone()
    for quads in (merged.at(1), merged.added(2), merged.removed(1), merged.deleted(3, 2), merged.between(1, 2).quads()):
        quads.fill_(-1)
    assert torch.equal(merged.facts, before)
    assert listed(merged.deleted(3, 2)) == [(0, 0, 1, 3), (1, 0, 0, 3)]


def test_overlapping_and_touching_intervals_are_merged(table: FactTable) -> None:
    assert listed(table.merged().facts) == [(0, 0, 1, 0, 2), (0, 1, 0, 0, 0), (1, 0, 0, 2, 2)]
    assert table.merged() is table.merged()
    assert table.merged().merged() is table.merged()


def test_an_interval_inside_another_one() -> None:
    facts = facts_tensor([(0, 0, 1, 0, 5), (0, 0, 1, 1, 2), (0, 0, 1, 4, 6), (0, 0, 1, 8, 8)])
    assert listed(FactTable(facts, 2, 1, 9).merged().facts) == [(0, 0, 1, 0, 6), (0, 0, 1, 8, 8)]


def test_on_another_device(table: FactTable) -> None:
    assert table.to("cpu") is table


@given(timelines())
def test_rows_at_each_step(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    for step in range(-1, timeline.num_steps + 1):
        rows = sorted(row for row in oracle.train if row[3] == step)
        for table, expected in ((timeline.train, rows), (timeline.observed, sorted(set(rows)))):
            assert listed(table.at(step)) == expected
            assert table.num_at(step) == len(expected)


@given(timelines())
def test_between(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    for first in range(-2, timeline.num_steps + 2):
        for last in range(-2, timeline.num_steps + 2):
            expected = sorted((row for row in oracle.train if first <= row[3] <= last), key=by_time)
            rows = timeline.train.between(first, last)
            assert len(rows) == len(expected)
            assert listed(rows.quads()) == expected


@given(timelines())
def test_merged_rows(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    assert timeline.train.num_rows == len(oracle.train)
    assert timeline.observed.num_rows == len(set(oracle.train))
    everything = timeline.observed.quads()
    assert listed(everything) == sorted(set(oracle.train), key=by_time)
    assert rows_of(timeline.truth.quads()) == sorted(set(oracle.all))


@given(timelines())
def test_changes_are_sorted(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    table = timeline.observed
    for step in range(timeline.num_steps + 1):
        assert listed(table.added(step)) == oracle.added(step)
        assert listed(table.removed(step)) == oracle.removed(step)
        for window in (1, 2, 9):
            assert listed(table.deleted(step, window)) == oracle.deleted(step, window)
            expected = sorted(oracle.boundary_facts(step, window), key=by_time)
            assert listed(table.boundary_facts(step - window, step - 1)) == expected
