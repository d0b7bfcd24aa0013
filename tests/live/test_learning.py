"""What an update learns: quads of changes, timelines, and rows that move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import FACTS, import_rows, small_store
from small_live import QUICK

from tkg_incremental.live import Change, FactStore
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.learning import former_facts, quads_to_learn, train_update
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.quads import ChangedFacts, changed_facts, expired_facts, facts_of_entities, replay_of_entities
from tkg_incremental.live.timelines import partial_timeline, whole_timeline

CLOCK = GraphClock(1, 12, "day")
Quads = set[tuple[int, ...]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with small_store(tmp_path) as store:
        yield store


def named(store: FactStore, quads: torch.Tensor) -> set[tuple[str | None, str | None, str | None, int]]:
    """Quads with names and instants."""
    return {
        (store.entities.of([h])[0], store.relations.of([r])[0], store.entities.of([t])[0], CLOCK.origin + step)
        for h, r, t, step in quads.tolist()
    }


def learn(store: FactStore, *changes: Change) -> ChangedFacts:
    store.record(changes, CLOCK.now, "hash")
    with store.preview():
        return changed_facts(changes, store, CLOCK)


def test_added_facts_are_learnt_within_their_interval(store: FactStore) -> None:
    found = learn(store, Change("add", "Bob", "works in", "Sales", 8), Change("add", "Cid", "leads", "Legal", 3, 6))
    with store.preview():
        quads = named(store, found.added)
    assert {at for head, _, _, at in quads if head == "Bob"} == {8, 9, 10, 11, 12}
    assert {at for head, _, _, at in quads if head == "Cid"} == {3, 4, 5}
    assert (len(found.ended), len(found.retracted)) == (0, 0)


def test_ended_facts_are_learnt_since_their_end(store: FactStore) -> None:
    found = learn(store, Change("end", "Ann", "leads", "R&D", 11))
    assert named(store, found.ended) == {("Ann", "leads", "R&D", 11), ("Ann", "leads", "R&D", 12)}
    # Ended and begun again: the time in between.
    again = [Change("end", "Cid", "works in", "R&D", 6), Change("add", "Cid", "works in", "R&D", 8)]
    found = learn(store, *again)
    assert {at for *_, at in named(store, found.ended)} <= {6, 7}


def test_ended_facts_are_replayed_at_the_steps_before(store: FactStore) -> None:
    changed = learn(store, Change("end", "Ann", "leads", "R&D", 11))
    with store.preview():
        facts = former_facts(whole_timeline(store, CLOCK), changed.ended)
    assert [CLOCK.origin + last for *_, last in facts.tolist()] == [10]
    assert named(store, facts[:, :4]).pop()[:3] == ("Ann", "leads", "R&D")
    assert len(former_facts(whole_timeline(store, CLOCK), changed.ended[:0])) == 0


def test_retracted_facts_are_unlearnt_where_they_do_not_hold(store: FactStore) -> None:
    found = learn(store, Change("retract", "Ann", "works in", "R&D", 7))
    assert named(store, found.retracted) and all(at >= 7 for *_, at in named(store, found.retracted))  # noqa: PT018


def test_ends_that_were_known_before(store: FactStore) -> None:
    before, after = GraphClock(1, 8, "day"), GraphClock(1, 9, "day")
    expected = {("Bob", "leads", "Sales", 9)}  # it holds until 8, included
    assert named(store, expired_facts(store, before, after)) == expected
    assert len(expired_facts(store, after, GraphClock(1, 12, "day"))) == 0
    # Not if it holds again at the last step.
    assert not named(store, expired_facts(store, GraphClock(1, 3, "day"), GraphClock(1, 7, "day")))


def test_facts_of_entities(store: FactStore) -> None:
    bob = store.entities.find("Bob")
    assert bob is not None
    quads = named(store, facts_of_entities([bob], store, CLOCK))
    assert {quad[:3] for quad in quads} == {("Bob", "leads", "Sales")}
    assert (min(at for *_, at in quads), max(at for *_, at in quads)) == (2, 8)


def test_facts_of_entities_before_the_year_0(tmp_path: Path) -> None:
    with FactStore.create(tmp_path / "ancient.db", "year") as store:
        import_rows(store, [("Ptolemy", "rules", "Egypt", -50, None), ("Caesar", "rules", "Rome", -49, -44)], clock=-40)
        clock, everyone = GraphClock(-50, -40, "year"), range(store.num_entities)
        found = facts_of_entities(everyone, store, clock)
        steps = [found[found[:, 0] == store.entities.find(name), 3] for name in ("Ptolemy", "Caesar")]
        assert [(int(each.min()), int(each.max())) for each in steps] == [(0, 10), (1, 5)]
        drawn = torch.cat([replay_of_entities(everyone, store, clock, 2, np.random.default_rng(i)) for i in range(99)])
        assert set(drawn[drawn[:, 0] == store.entities.find("Ptolemy"), 3].tolist()) == set(range(11))


def test_timelines(store: FactStore) -> None:
    whole = whole_timeline(store, CLOCK)
    rows = {
        (head, rel, tail, start, min(CLOCK.now + 1 if stop is None else stop, CLOCK.now + 1) - 1)
        for head, rel, tail, start, stop in FACTS
    }

    def show(facts: torch.Tensor) -> set[tuple[str | None, str | None, str | None, int, int]]:
        return {
            (store.entities.of([h])[0], store.relations.of([r])[0], store.entities.of([t])[0], a + 1, b + 1)
            for h, r, t, a, b in facts.tolist()
        }

    assert show(whole.observed.facts) == rows
    ended = torch.tensor([[store.entities.find("Ann"), store.relations.find("leads"), store.entities.find("R&D"), 11]])
    nothing = ended[:0]
    part = partial_timeline(store, CLOCK, ChangedFacts(nothing, ended, nothing), nothing)
    assert show(part.observed.facts) == {row for row in rows if row[1] == "leads" and row[2] == "R&D"}


def test_an_update_reports_the_rows_that_it_moves(store: FactStore) -> None:
    timeline = whole_timeline(store, CLOCK)
    model = QUICK.make_model(store.num_entities, store.num_relations, CLOCK.num_steps)
    before = {name: table.detach().clone() for name, table in model.tables().items()}
    added = facts_of_entities([0], store, CLOCK)
    changed = ChangedFacts(added, added[:0], added[:0])
    rounds = []

    def judge() -> tuple[float, bool]:
        rounds.append(1)
        return 0.0, True

    moved = train_update(model, timeline, changed, added[:0], QUICK, 0, judge)
    assert len(rounds) == 1
    for name, table in model.tables().items():
        differs = (table.detach() != before[name]).any(1).nonzero().flatten()
        assert differs.tolist() == sorted(moved[name].tolist())
        assert len(differs)


def test_an_update_keeps_its_best_round(store: FactStore) -> None:
    timeline = whole_timeline(store, CLOCK)
    added = facts_of_entities([0], store, CLOCK)
    changed = ChangedFacts(added, added[:0], added[:0])
    values, vectors = iter([1.0, 3.0, 2.0, 3.0]), []
    model = QUICK.make_model(store.num_entities, store.num_relations, CLOCK.num_steps)

    def judge() -> tuple[float, bool]:
        vectors.append(model.tables()["entity_vectors"].detach().clone())
        return next(values), len(vectors) == 4

    train_update(model, timeline, changed, added[:0], replace(QUICK, rounds=10), 0, judge)
    assert len(vectors) == 4
    assert torch.equal(model.tables()["entity_vectors"], vectors[1])
    assert not torch.equal(vectors[1], vectors[3])


def test_quads_of_an_update(store: FactStore) -> None:
    """Added facts several times, all facts that hold, and the past: of each fact, or the replayed quads alone."""
    changed = learn(
        store,
        Change("add", "Bob", "works in", "Sales", 12),
        Change("end", "Ann", "leads", "R&D", 12),
    )
    with store.preview():
        timeline = whole_timeline(store, CLOCK)
    settings = replace(QUICK, repeats=3, replay=len(timeline.observed))
    ended = changed.ended[0].tolist()
    for replay in (None, changed.added[:0]):
        lazy = quads_to_learn(timeline, changed, replay, settings, 0)
        quads = lazy.take(torch.arange(len(lazy)), torch.Generator()).tolist()
        now = timeline.observed.at(CLOCK.num_steps - 1).tolist()
        (added,) = changed.added.tolist()
        assert all(quad in quads for quad in now)
        assert quads.count(added) == 6 + 1 + (replay is None)
        # The ended fact at some of its steps, at the last one in any case.
        steps = [step for *triple, step in quads if triple == ended[:3]]
        assert ended[3] - 1 == max(steps)
        assert len(steps) >= 4
        triples = {tuple(triple) for *triple, _ in quads}
        everything = {tuple(triple) for *triple, _, _ in timeline.observed.facts.tolist()}
        assert triples == everything if replay is None else triples < everything


def test_quads_of_entities_without_facts_are_left_out(store: FactStore) -> None:
    with store.transaction():
        new = store.entities.add("Zoë")
    timeline = whole_timeline(store, CLOCK)
    model = QUICK.make_model(store.num_entities, store.num_relations, CLOCK.num_steps)
    over = torch.tensor([[new, 0, 1, 11]])
    train_update(model, timeline, ChangedFacts(over[:0], over[:0], over), over[:0], QUICK, 0, lambda: (0.0, True))


def test_settings() -> None:
    assert LiveSettings.from_tables({"name": "TNTComplEx"}, {"lr": 0.5}).lr == 0.5
    with pytest.raises(ValueError, match="has no option 'learning_rate'"):
        LiveSettings.from_tables({"learning_rate": 0.5})
