"""The store equals a plain model of sets of intervals, at every revision."""

from __future__ import annotations

import copy
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import FACTS, State, apply_plainly, import_rows, quick, small_store, state_of, tidy
from hypothesis import given, settings
from hypothesis import strategies as st

from tkg_incremental.live import (
    Change,
    ChangeSet,
    FactStore,
    GraphFolderError,
    Release,
)
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.erase import erase_from_store
from tkg_incremental.live.facts import sample_quads
from tkg_incremental.live.known import StoreFacts
from tkg_incremental.live.revisions import apply_change, begin_revision

CLOCK = GraphClock(0, 12, "day")

NAMES = st.sampled_from(["a", "b", "ü", "d"])
CHANGES = st.builds(
    lambda op, head, rel, tail, at, length: Change(
        op,
        head,
        rel,
        tail,
        None if op == "retract" and length == 0 else at,  # without a time all intervals are retracted
        at + length if op == "add" and length else None,
    ),
    st.sampled_from(["add", "add", "end", "retract"]),
    NAMES,
    st.sampled_from(["r", "s"]),
    NAMES,
    st.integers(0, 12),
    st.integers(0, 5),
)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.lists(CHANGES, max_size=6)),
        st.tuples(st.just("release"), st.none()),
        st.tuples(st.just("rollback"), st.integers(0, 9)),
        st.tuples(st.just("discard"), st.integers(0, 9)),
        st.tuples(st.just("erase"), st.tuples(NAMES) | st.tuples(NAMES, st.sampled_from(["r", "s"]), NAMES)),
    ),
    max_size=12,
)


def erased(triple: tuple[str, str, str], names: tuple[str, ...]) -> bool:
    """Whether the erasure of an entity or a fact removes a triple."""
    return triple == names if len(names) == 3 else names[0] in (triple[0], triple[2])


def erase(store: FactStore, names: tuple[str, ...]) -> None:
    ids = tuple((store.relations if i == 1 else store.entities).find(name) for i, name in enumerate(names))
    if None not in ids:
        with store.transaction():
            erase_from_store(store, ids)  # type: ignore[arg-type]


def order_of(change: Change) -> tuple[bool, int, bool]:
    """Retractions, then the others by time; a fact may end and begin again at one instant."""
    return change.op != "retract", -1 if change.at is None else change.at, change.op != "end"


@settings(max_examples=60)
@given(ACTIONS)
def test_a_sequence_of_updates_equals_the_plain_model(actions: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, quick(FactStore.create(Path(folder) / "facts.db", "day")) as store:
        import_rows(store, [("a", "r", "b", 1, None), ("b", "s", "d", 2, 5)])
        state: State = {("a", "r", "b"): [(1, 2**63 - 1)], ("b", "s", "d"): [(2, 5)]}
        chains: list[list[Release]] = [[Release(0, None, 0, 4)]]
        states = [copy.deepcopy(state)]
        store.sync(chains[0])
        current, pending = 0, []
        for action, value in actions:
            if action == "update":
                checked = ChangeSet(value).validate(store)
                expected = copy.deepcopy(state)
                for change in [change for update in pending for change in update]:
                    apply_plainly(expected, change)
                accepted, seen = [], []
                for change in sorted(value, key=order_of):
                    if change not in seen:
                        seen.append(change)
                        if apply_plainly(expected, change):
                            accepted.append(change)
                assert checked.changes == accepted
                assert len(checked.rejected) == len(seen) - len(accepted)
                store.record(checked.changes, 4, "x")
                pending.append(accepted)
                with store.preview():
                    assert state_of(store) == tidy(expected)
            elif action == "release":
                number = len(chains)
                updates = tuple(update.id for update in store.updates("pending"))
                chains.append([*chains[current], Release(number, current, 0, 4, updates)])
                for change in [change for update in pending for change in update]:
                    apply_plainly(state, change)
                current, pending = number, []
                states.append(copy.deepcopy(state))
                store.sync(chains[current])
            elif action == "discard":
                if pending:
                    store.discard(store.updates("pending")[value % len(pending)].id)
                    del pending[value % len(pending)]
            elif action == "erase":
                erase(store, value)
                for every in (state, *states):
                    for triple in [triple for triple in every if erased(triple, value)]:
                        del every[triple]
                pending = [[c for c in update if not erased((c.head, c.rel, c.tail), value)] for update in pending]
            else:
                current = value % len(chains)
                state = copy.deepcopy(states[current])
                store.sync(chains[current])
            assert state_of(store) == tidy(state)
            assert set(StoreFacts(store, CLOCK).type_members(0, "head").tolist()) == {
                store.entities.find(head) for (head, rel, _), pairs in state.items() if rel == "r" and pairs
            }
        for number, expected in enumerate(states):  # recorded time
            assert state_of(store, store.revision_of(number)) == tidy(expected)


def test_lookups(tmp_path: Path) -> None:
    with small_store(tmp_path) as store:
        ann, cid, research = (store.entities.find(name) for name in ("Ann", "Cid", "R&D"))
        leads, works = 0, store.relations.find("works in")
        assert store.entities.find("nobody") is None
        assert ann is not None
        assert works is not None
        assert research is not None
        assert {fact.head for fact in store.answers(None, works, research, at=3)} == {ann, cid}
        assert {fact.head for fact in store.answers(None, works, research, at=4)} == {cid}
        assert [fact.tail for fact in store.answers(ann, leads, None, at=0)] == []
        assert [fact[4:] for fact in store.intervals(ann, works, research)] == [(1, 4), (6, None)]
        assert len(store.neighbours(research)) == 4
        assert store.clock == 10
        with pytest.raises(ValueError, match=r"one of head and tail must be given"):
            store.answers(None, works, None)


def test_as_of_a_recorded_instant(tmp_path: Path) -> None:
    with small_store(tmp_path) as store:
        store.sync([Release(0, None, 0, 10)])
        before = time.time_ns() // 1000 + 1
        while time.time_ns() // 1000 <= before:
            pass
        update = store.record([Change("end", "Ann", "leads", "R&D", 5)], 11, "h")
        store.sync([Release(0, None, 0, 10), Release(1, 0, 0, 11, (update,))])
        assert state_of(store)["Ann", "leads", "R&D"] == [(1, 5)]
        assert state_of(store, store.state_at(before)[0])["Ann", "leads", "R&D"] == [(1, 2**63 - 1)]
        assert state_of(store, store.state_at(0)[0]) == {}
        assert store.clock == 11


@pytest.mark.parametrize("small", [10**9, 0])
def test_pairs_are_drawn_uniformly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr("tkg_incremental.live.facts.SMALL", small)
    with small_store(tmp_path) as store:
        store.sync([Release(0, None, 0, 10)])
        update = store.record([Change("retract", "Cid", "works in", "R&D")], 10, "h")
        store.sync([Release(0, None, 0, 10), Release(1, 0, 0, 10, (update,))])
        expected = {
            (store.entities.find(head), store.relations.find(rel), store.entities.find(tail), at)
            for (head, rel, tail), pairs in state_of(store).items()
            for start, stop in pairs
            for at in range(start, min(stop, 8))
        }
        quads = sample_quads(store, 30_000, np.random.default_rng(0), before=8)
    found, counts = np.unique(quads, axis=0, return_counts=True)
    assert set(map(tuple, found.tolist())) == expected
    assert len(expected) == 18
    share = 30_000 / len(expected)
    assert ((counts - share) ** 2 / share).sum() < 45  # chi-square with 17 degrees of freedom: 1 in 5,000


@pytest.mark.parametrize("small", [10**9, 0])
def test_pairs_of_late_facts_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    """A fact may begin before all others."""
    monkeypatch.setattr("tkg_incremental.live.facts.SMALL", small)
    with small_store(tmp_path) as store:
        update = store.record([Change("add", "Bob", "works in", "Sales", -40, -20)], 10, "h")
        store.sync([Release(0, None, 0, 10, (update,))])
        steps = sample_quads(store, 3000, np.random.default_rng(0), before=8)[:, 3]
        assert set(range(-40, -20)) <= set(steps.tolist())
        assert steps.min() == -40


def test_updates_are_found_by_their_content(tmp_path: Path) -> None:
    with small_store(tmp_path) as store:
        store.sync([Release(0, None, 0, 10)])
        changes = ChangeSet([Change("add", "Dan", "leads", "R&D", 11)])
        update = store.record(changes, 11, changes.content_hash, "monday.csv")
        assert store.find_update(changes.content_hash) == store.updates("pending")[0]
        store.sync([Release(0, None, 0, 10), Release(1, 0, 0, 11, (update,))])
        found = store.find_update(changes.content_hash)
        assert found is not None
        assert (found.state, found.source, found.num_changes) == ("applied", "monday.csv", 1)
        assert store.changes(update) == changes.changes
        assert [release.updates for release in store.releases()] == [(), (update,)]
        store.sync([Release(0, None, 0, 10)])
        assert store.find_update(changes.content_hash) is None  # undone: it can be applied again
        assert store.entities.find("Dan") == 5
        again = store.record(changes, 11, changes.content_hash)
        store.discard(again)
        with pytest.raises(GraphFolderError, match=r"update 1 is not pending"):
            store.discard(update)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphFolderError, match=r"there is no fact store"):
        FactStore(tmp_path / "facts.db")
    (tmp_path / "text.db").write_text("this is no database, but a text that is long enough to look like one" * 9)
    with pytest.raises(GraphFolderError, match=r"file is not a database"):
        FactStore(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(GraphFolderError, match=r"no fact store"):
        FactStore(tmp_path / "other.db")
    with small_store(tmp_path) as store:
        store.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(GraphFolderError, match=r"schema version 2 is expected \(got 99\)"):
        FactStore(tmp_path / "facts.db")


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    with small_store(tmp_path) as store:
        with pytest.raises(ZeroDivisionError), store.transaction():
            store.entities.add("new")
            _ = 1 / 0
        assert store.entities.find("new") is None
        assert store.num_facts == len(FACTS)
        assert "FactStore(" in repr(store)


def test_facts_are_counted_without_reading_them(tmp_path: Path) -> None:
    with small_store(tmp_path) as store:
        changes = [Change("add", "Eve", "leads", "Legal", 9), Change("retract", "Ann", "leads", "R&D")]
        for number, change in enumerate(changes):
            with store.transaction():
                assert apply_change(store, begin_revision(store, f"change {number}"), change) is None
            counted = store.connection.execute("SELECT count(*) FROM facts").fetchone()[0]
            assert store.num_facts == counted == len(FACTS) + 1 - number
        store.connection.execute("DELETE FROM meta WHERE key = 'facts'")  # a store of an earlier version
        assert store.num_facts == len(FACTS)
