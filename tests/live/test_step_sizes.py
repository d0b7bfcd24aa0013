"""How far rows may move in an update of a large graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import FACTS, small_store
from small_live import QUICK

from tkg_incremental.live import FactStore
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.learning import EndedFacts, train_update
from tkg_incremental.live.quads import ChangedFacts, facts_of_entities, replay_of_entities
from tkg_incremental.live.step_sizes import sums_by_facts
from tkg_incremental.live.timelines import whole_timeline
from tkg_incremental.loader import NegativeSampler, TKGLoader
from tkg_incremental.strategies import Given
from tkg_incremental.strategies.context import TrainingContext

CLOCK = GraphClock(1, 12, "day")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FactStore]:
    with small_store(tmp_path) as store:
        yield store


def test_every_fact_of_a_row_counts(store: FactStore) -> None:
    model = QUICK.make_model(6, 3, CLOCK.num_steps)
    learnt = {"entity": 5, "relation": 4, "time": 10}
    names = store.entities.of(range(5))
    sums = sums_by_facts(model, learnt, [0, 1, 5], store, 0.5)
    counts = [0.5 * sum(name in (head, tail) for head, _, tail, *_ in FACTS) for name in names]
    found = sums("entity_vectors", torch.arange(6)).flatten().tolist()
    assert found == [*counts[:2], torch.inf, torch.inf, torch.inf, 0.0]
    everything = 0.5 * len(FACTS)
    assert sums("relation_vectors", torch.arange(6)).flatten().tolist() == [everything] * 4 + [0.0] * 2
    # A new step is a copy of the last one, which the facts that go on depend on.
    assert sums("time_vectors", torch.tensor([0, 9, 10, 11])).flatten().tolist() == [torch.inf] * 2 + [everything] * 2


def test_only_entities_of_changes_move(store: FactStore) -> None:
    """The others are learnt from as negatives, and stay as they are to the bit."""
    model = QUICK.make_model(store.num_entities, store.num_relations, CLOCK.num_steps)
    before = {name: table.detach().clone() for name, table in model.tables().items()}
    added = facts_of_entities([0], store, CLOCK)
    entities = set(torch.unique(added[:, [0, 2]]).tolist())
    assert len(entities) < store.num_entities
    learnt = {"entity": store.num_entities, "relation": 2 * store.num_relations, "time": CLOCK.num_steps}
    sums = sums_by_facts(model, learnt, entities, store, 1e-6)
    changed = ChangedFacts(added, added[:0], added[:0])
    timeline = whole_timeline(store, CLOCK)
    moved = train_update(model, timeline, changed, added, QUICK, 0, lambda: (0.0, True), sums)
    tables = model.tables()
    assert set(moved["entity_vectors"].tolist()) == entities
    for name, table in tables.items():
        differs = (table.detach() != before[name]).any(1).nonzero().flatten()
        assert sorted(moved[name].tolist()) == differs.tolist()


def test_ended_facts_move_entities_only(store: FactStore) -> None:
    """The gradient of a term with one ended fact, with and without that of relations and steps."""
    model = QUICK.make_model(store.num_entities, store.num_relations, CLOCK.num_steps)
    model.sparse_gradients = False
    timeline = whole_timeline(store, CLOCK)
    quads = torch.tensor([[0, 0, 1, 11]])
    gradients = []
    for entities_only in (False, True):
        term = EndedFacts(Given(quads), 3, 1.0, open_only=False, entities_only=entities_only)
        sampler, generator = NegativeSampler(timeline), torch.Generator().manual_seed(0)
        batch = next(iter(TKGLoader(timeline, 11, [term], sampler, generator)))
        (encoded,) = model.encode(batch, timeline)
        model.zero_grad()
        term.losses(encoded, TrainingContext(timeline, 11, model, None))["unlikelihood"].backward()
        gradients.append({name: table.grad for name, table in model.tables().items()})
    everything, entities = gradients
    torch.testing.assert_close(entities.pop("entity_vectors"), everything.pop("entity_vectors"))
    assert all(gradient is not None and bool(gradient.any()) for gradient in everything.values())
    assert all(gradient is None or not bool(gradient.any()) for gradient in entities.values())


def test_replay_of_entities(store: FactStore) -> None:
    rng = np.random.default_rng(0)
    expected = {tuple(quad[:3]) for quad in facts_of_entities([0], store, CLOCK).tolist()}
    timeline = whole_timeline(store, CLOCK)
    true = {tuple(quad) for step in range(CLOCK.num_steps) for quad in timeline.observed.at(step).tolist()}
    steps = set()
    for _ in range(20):
        quads = {tuple(quad) for quad in replay_of_entities([0], store, CLOCK, 100, rng).tolist()}
        assert quads <= true
        assert {quad[:3] for quad in quads} == expected
        steps |= {quad[3] for quad in quads}
    assert len(steps) > 5
    assert len(replay_of_entities([0], store, CLOCK, 1, rng)) == 1
    assert replay_of_entities([], store, CLOCK, 5, rng).shape == (0, 4)
