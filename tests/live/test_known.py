"""Known facts and names by look-ups in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from graphs import commit, import_rows, small_graph, small_store, small_tables

from tkg_incremental.answers.facts import Interval, TensorFacts
from tkg_incremental.live import Change, FactStore
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.known import StoreFacts
from tkg_incremental.live.timelines import whole_timeline
from tkg_incremental.ops.answers import SIDES

CLOCK = GraphClock(1, 10, "day")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with small_store(tmp_path) as store:
        yield store


def ids(store: FactStore, *names: str) -> list[int]:
    found = [store.entities.find(name) for name in names]
    assert None not in found
    return found  # type: ignore[return-value]


def test_intervals_in_steps(store: FactStore) -> None:
    facts, works = StoreFacts(store, CLOCK), store.relations.find("works in")
    ann, research = ids(store, "Ann", "R&D")
    assert works is not None
    assert facts.intervals(ann, works, research) == [Interval(0, 2), Interval(5, None)]


def test_an_end_with_the_last_step_is_known(store: FactStore) -> None:
    ann, research = ids(store, "Ann", "R&D")
    works = store.relations.find("works in")
    assert works is not None
    for last, end in ((2, None), (3, 2), (4, 2)):  # a later one is not yet
        facts = StoreFacts(store, GraphClock(1, last, "day"))
        assert facts.intervals(ann, works, research)[0] == Interval(0, end)


def test_known_answers(store: FactStore) -> None:
    facts, works = StoreFacts(store, CLOCK), store.relations.find("works in")
    ann, cid, research = ids(store, "Ann", "Cid", "R&D")
    assert works is not None
    at = {step: facts.answers(research, works, "head", step) for step in range(10)}
    assert [ann in at[step] for step in range(10)] == [True] * 3 + [False] * 2 + [True] * 5
    assert at[4] == {cid: [Interval(2, None)]}
    assert facts.answers(ann, works, "tail", 0) == {research: [Interval(0, 2)]}
    assert facts.answers(research, works, "head") == {
        ann: [Interval(0, 2), Interval(5, None)],
        cid: [Interval(2, None)],
    }
    assert facts.is_closed(works)


def test_facts_that_begin_after_the_last_step(store: FactStore) -> None:
    facts, works = StoreFacts(store, GraphClock(1, 4, "day")), store.relations.find("works in")
    ann, research = ids(store, "Ann", "R&D")
    assert works is not None
    assert facts.intervals(ann, works, research) == [Interval(0, 2), Interval(5, None)]
    assert facts.answers(research, works, "head")[ann] == [Interval(0, 2), Interval(5, None)]


def test_events_may_happen_again(tmp_path: Path) -> None:
    with FactStore.create(tmp_path / "facts.db", "day") as store:
        import_rows(store, [("Ann", "visits", "R&D", 3, 4), ("Bob", "visits", "R&D", 5, 6)], clock=10)
        assert not StoreFacts(store, CLOCK).is_closed(0)


def test_types(store: FactStore) -> None:
    facts, leads = StoreFacts(store, CLOCK), store.relations.find("leads")
    ann, bob, research, sales = ids(store, "Ann", "Bob", "R&D", "Sales")
    assert leads is not None
    assert facts.type_members(leads, "head").tolist() == sorted([ann, bob])
    assert facts.type_members(leads, "tail").tolist() == sorted([research, sales])
    assert facts.answers_per_query(leads, "head") == 1.0
    both = sorted(rel for name in ("leads", "works in") if (rel := store.relations.find(name)) is not None)
    assert facts.relations_of_type(ann, research) == both


@pytest.mark.parametrize("last", [4, 8, 10])
def test_further_answers_are_those_of_the_steps_until_the_last(store: FactStore, last: int) -> None:
    clock = GraphClock(1, last, "day")
    steps = TensorFacts(whole_timeline(store, clock).observed.facts, clock.num_steps)
    facts = StoreFacts(store, clock)
    for rel in range(store.num_relations):
        for side in SIDES:
            assert facts.further_answers(rel, side).tolist() == pytest.approx(steps.further_answers(rel, side).tolist())
    leads, works = store.relations.find("leads"), store.relations.find("works in")
    assert leads is not None
    assert works is not None
    assert facts.further_answers(leads, "head")[1] < facts.further_answers(works, "head")[1]


def test_further_answers_at_a_revision(tmp_path: Path) -> None:
    with small_graph(tmp_path) as folder:
        before, revision = StoreFacts(folder.store, CLOCK).further_answers(0, "head"), folder.store.revision_of(0)
        change = Change("add", "Cid", "leads", "R&D", 1)
        folder.store.record([change], 10, "x")
        commit(folder, small_tables(5), None, clock=10, updates=(1,))
        assert StoreFacts(folder.store, CLOCK).further_answers(0, "head")[1] > before[1]
        assert torch.equal(StoreFacts(folder.store, CLOCK, revision).further_answers(0, "head"), before)


def test_a_sample_of_a_type(tmp_path: Path) -> None:
    with FactStore.create(tmp_path / "facts.db", "day") as store:
        import_rows(store, [(f"person {i}", "works in", "R&D", 1, None) for i in range(700)])
        facts = StoreFacts(store, CLOCK)
        members = facts.type_members(0, "head").tolist()
        assert facts.some_members(0, "head", 700).tolist() == members
        few = facts.some_members(0, "head", 100).tolist()
        assert len(set(few)) == len(few) <= 100
        assert len(few) > 50
        assert set(few) <= set(members)
        assert few == facts.some_members(0, "head", 100).tolist()
