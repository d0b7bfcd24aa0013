"""Timelines of the facts of a store: of all facts, or of those that an update needs."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.quads import MANY_FACTS, ChangedFacts
from tkg_incremental.live.records import OPEN
from tkg_incremental.live.store import FactStore
from tkg_incremental.ops.answers import FIRST, LAST


def whole_timeline(store: FactStore, clock: GraphClock) -> Timeline:
    """A timeline of all facts of the store but those that begin after the last step."""
    facts = torch.from_numpy(store.facts_arrays()[1:].T.copy())
    facts[:, FIRST] = facts[:, FIRST].clamp(min=clock.origin) - clock.origin
    facts[:, LAST] = (facts[:, LAST] - 1).clamp(max=clock.now) - clock.origin
    return make_timeline(facts[facts[:, FIRST] <= facts[:, LAST]], store, clock)


def make_timeline(facts: Tensor, store: FactStore, clock: GraphClock) -> Timeline:
    """A timeline of facts ``[F, 5]`` in steps."""
    nothing = torch.empty(0, 5, dtype=torch.long)
    sizes = max(1, store.num_entities), max(1, store.num_relations)
    return Timeline({"train": facts, "val": nothing, "test": nothing}, *sizes, clock)


def partial_timeline(store: FactStore, clock: GraphClock, changed: ChangedFacts, replay: Tensor) -> Timeline:
    """A timeline of the changed facts, the facts that share a query with them, and replayed quads: what an update of a
    large graph needs. True answers outside of it may be drawn as negatives, with a probability that is negligible."""
    rows = {(*quad, quad[3]) for quad in replay.tolist()}
    for head, rel, tail, _ in torch.cat(changed).tolist():
        rivals = [*store.answers(head, rel, None, limit=200), *store.answers(None, rel, tail, limit=200)]
        for fact in [*store.answers(head, rel, tail), *rivals]:
            until = OPEN if fact.valid_to is None else fact.valid_to
            first = max(fact.valid_from, clock.origin) - clock.origin
            last = min(until - 1, clock.now) - clock.origin
            if first <= last:
                rows.add((fact.head, fact.rel, fact.tail, first, last))
    facts = torch.tensor(sorted(rows), dtype=torch.long).view(-1, 5)
    return make_timeline(facts, store, clock)


def update_timeline(store: FactStore, clock: GraphClock, changed: ChangedFacts, replay: Tensor) -> Timeline:
    """What an update learns from: all facts of a graph that is not large."""
    if store.num_facts <= MANY_FACTS:
        return whole_timeline(store, clock)
    return partial_timeline(store, clock, changed, replay)
