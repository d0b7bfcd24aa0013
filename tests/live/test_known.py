"""Known facts and names by look-ups in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from graphs import small_store

from tkg_incremental.answers.facts import FactsOfQuestion, Interval
from tkg_incremental.live import FactStore, import_facts
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.known import StoreFacts, StoreNames

CLOCK = GraphClock(1, 10, "day")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with small_store(tmp_path) as store:
        yield store


def ids(store: FactStore, *names: str) -> list[int]:
    found = [store.entity_id(name) for name in names]
    assert None not in found
    return found  # type: ignore[return-value]


def test_intervals_in_steps(store: FactStore) -> None:
    facts, works = StoreFacts(store, CLOCK), store.relation_id("works in")
    ann, research = ids(store, "Ann", "R&D")
    assert works is not None
    assert facts.intervals(ann, works, research) == [Interval(0, 2), Interval(5, None)]


def test_known_answers(store: FactStore) -> None:
    facts, works = StoreFacts(store, CLOCK), store.relation_id("works in")
    ann, cid, research = ids(store, "Ann", "Cid", "R&D")
    assert works is not None
    at = {step: facts.known_answers(research, works, "head", step) for step in range(10)}
    assert [ann in at[step] for step in range(10)] == [True] * 3 + [False] * 2 + [True] * 5
    assert at[4] == {cid: Interval(2, None)}
    assert facts.known_answers(ann, works, "tail", 0) == {research: Interval(0, 2)}
    assert facts.answers(research, works, "head") == {
        ann: [Interval(0, 2), Interval(5, None)],
        cid: [Interval(2, None)],
    }
    assert facts.is_closed(works)


def test_facts_that_begin_after_the_last_step(store: FactStore) -> None:
    facts, works = StoreFacts(store, GraphClock(1, 4, "day")), store.relation_id("works in")
    ann, research = ids(store, "Ann", "R&D")
    assert works is not None
    assert facts.intervals(ann, works, research) == [Interval(0, 2), Interval(5, None)]
    assert ann in FactsOfQuestion.at(facts, research, works, "head", 3).other


def test_events_may_happen_again(tmp_path: Path) -> None:
    with FactStore.create(tmp_path / "facts.db", "day") as store:
        import_facts(store, [("Ann", "visits", "R&D", 3, 4), ("Bob", "visits", "R&D", 5, 6)], clock=10)
        assert not StoreFacts(store, CLOCK).is_closed(0)


def test_types(store: FactStore) -> None:
    facts, leads = StoreFacts(store, CLOCK), store.relation_id("leads")
    ann, bob, research, sales = ids(store, "Ann", "Bob", "R&D", "Sales")
    assert leads is not None
    assert facts.type_members(leads, "head").tolist() == sorted([ann, bob])
    assert facts.type_members(leads, "tail").tolist() == sorted([research, sales])
    assert facts.answers_per_query(leads, "head") == 1.0
    both = sorted(rel for name in ("leads", "works in") if (rel := store.relation_id(name)) is not None)
    assert facts.relations_of_type(ann, research) == both


def test_names(store: FactStore) -> None:
    names = StoreNames(store, "entity")
    (ann,) = ids(store, "Ann")
    assert (names.index("Ann"), names.index("ANN"), names.index(7), names[ann]) == (ann, ann, 7, "Ann")
    with pytest.raises(KeyError, match="no entity is called 'an'; the nearest are 'Ann'"):
        names.index("an")
    with pytest.raises(KeyError, match="no relation is called 'leeds'; the nearest are 'leads'"):
        StoreNames(store, "relation").index("leeds")
    assert names[99] == "(erased entity 99)"


def test_names_without_a_row_of_the_model_are_unknown(store: FactStore) -> None:
    (last,) = (store.entity_names([store.num_entities - 1])[0],)
    assert last is not None
    assert StoreNames(store, "entity").index(last) == store.num_entities - 1
    for name in (last, last.upper()):
        with pytest.raises(KeyError, match="no entity is called"):
            StoreNames(store, "entity", store.num_entities - 1).index(name)
