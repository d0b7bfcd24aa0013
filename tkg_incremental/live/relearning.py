"""Learning after an erasure: new values for what was erased, and its neighbours from what is left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.live.gate import GateReport
from tkg_incremental.live.learning import train_update
from tkg_incremental.live.quads import ChangedFacts, facts_of_entities, older_facts, replay_quads, some_quads
from tkg_incremental.live.questions import Questions
from tkg_incremental.live.release_model import changed_rows, is_finite, load_grown, load_model, write_model
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.live.step_sizes import sums_by_facts
from tkg_incremental.live.timelines import update_timeline
from tkg_incremental.seeding import make_generator

# Learning ends when this share of the neighbours' facts ranks first.
_LEARNED = 0.99


def new_rows(graph: ServedGraph, entities: Sequence[int]) -> dict[str, tuple[Tensor, Tensor]]:
    """For each table new values of the rows of entities, as far as there is a model with such rows."""
    if graph.current is None:
        return {}
    model = load_model(graph)
    index = torch.tensor([entity for entity in entities if entity < model.sizes["entity"]])
    if not len(index):
        return {}
    model.initialize("entity", index, make_generator(graph.settings.seed, "erase", int(index[0])))
    tables = model.tables("entity")
    return {name: (index, values[index].detach().clone()) for name, values in tables.items()}


def relearn(graph: ServedGraph, entities: Iterable[int]) -> None:
    """Learns the facts of entities again, after an erasure, and releases the result. What is pending stays so."""
    store, clock, settings = graph.folder.store, graph.clock, graph.settings
    changed = ChangedFacts(facts_of_entities(entities, store, clock), *torch.empty(2, 0, 4, dtype=torch.long))
    model, sizes = load_grown(graph, clock.num_steps)
    rng, initial_sums = np.random.default_rng(settings.seed), None
    replay = replay_quads(store, clock, settings.replay, rng)
    if not settings.visits_every_fact(store.num_facts):
        initial_sums = sums_by_facts(model, sizes, entities, store)
    static = model.static_entities
    added = Questions(some_quads(changed.added, graph.gate.sample, settings.seed), store, clock, static)
    older = Questions(older_facts(store, clock, graph.gate.sample, settings.seed), store, clock, static)

    def judge_round() -> tuple[float, bool]:
        learned = added.share_first(model) if len(added) else 1.0
        return learned, learned >= _LEARNED

    timeline = update_timeline(store, clock, changed, replay)
    moved = train_update(model, timeline, changed, replay, settings, 0, judge_round, initial_sums)
    rows = changed_rows(model, moved, sizes)
    kept = older.share_first(model)
    report = GateReport(math.nan, kept, kept, math.nan, math.nan, is_finite(model, rows))
    about = {"reason": "erasure", "facts": store.num_facts}
    number = write_model(graph.folder, model, rows, report, graph.calibration, clock.now, about, updates=())
    graph.folder.release(number)
