"""Timelines of the facts of a store: of all facts, or of those that an update needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.quads import MANY_FACTS, ChangedFacts
from tkg_incremental.live.records import OPEN
from tkg_incremental.live.store import FactStore


def steps_of_facts(facts: Sequence[np.ndarray], clock: GraphClock) -> Tensor:
    """Facts ``[F, 5]`` in steps, without those that begin after the last step.

    Args:
        facts: Arrays of head, rel, tail, valid_from, valid_to (exclusive).
        clock: The time axis.
    """
    head, rel, tail, valid_from, valid_to = facts
    first = np.maximum(valid_from, clock.origin) - clock.origin
    last = np.minimum(valid_to - 1, clock.now) - clock.origin
    rows = np.stack([head, rel, tail, first, last], axis=1)[first <= last]
    return torch.from_numpy(np.ascontiguousarray(rows))


def whole_timeline(store: FactStore, clock: GraphClock) -> Timeline:
    """A timeline of all facts of the store."""
    arrays = store.facts_arrays()
    return make_timeline(steps_of_facts(arrays[1:], clock), store, clock)


def make_timeline(facts: Tensor, store: FactStore, clock: GraphClock) -> Timeline:
    nothing = torch.empty(0, 5, dtype=torch.long)
    sizes = max(1, store.num_entities), max(1, store.num_relations)
    return Timeline({"train": facts, "val": nothing, "test": nothing}, *sizes, clock.axis)


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
