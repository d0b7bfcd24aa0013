"""Quads that an update learns from or is measured on: of changes, of entities, and samples of the store."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.facts import Ints, sample_quads
from tkg_incremental.live.records import OPEN, Change
from tkg_incremental.live.store import FactStore
from tkg_incremental.ops.answers import FIRST, LAST, TIME
from tkg_incremental.seeding import make_generator

# At most this number of facts are learnt as ended because the clock moves past their end; of a graph with more than
# MANY_FACTS, where thousands of facts end each day, fewer.
MAX_EXPIRED, MAX_EXPIRED_OF_MANY = 1_000, 200
# Graphs with more facts than this are updated from a sample of their facts instead of all of them.
MANY_FACTS = 300_000
# Steps of an interval at which a fact is learnt.
_VISITS = 5


class ChangedFacts(NamedTuple):
    """Quads of the facts that an update changes, ``[n, 4]`` each."""

    added: Tensor
    ended: Tensor
    retracted: Tensor


def changed_facts(changes: Sequence[Change], store: FactStore, clock: GraphClock) -> ChangedFacts:
    """Quads of changes: an added fact at several steps of its interval, an ended one at steps since its end, and a
    retracted one at several steps at which it was said to hold."""
    added, ended, retracted = [], [], []
    for change in changes:
        head, tail = store.entities.find(change.head), store.entities.find(change.tail)
        rel = store.relations.find(change.rel)
        if head is None or rel is None or tail is None:
            continue
        holds = [
            (clock.step(i.valid_from), clock.step((OPEN if i.valid_to is None else i.valid_to) - 1))
            for i in store.intervals(head, rel, tail)
            if i.valid_from <= clock.now
        ]
        now = clock.num_steps - 1
        if change.op == "add":
            assert change.at is not None
            begin = clock.step(change.at)
            found = [(first, last) for first, last in holds if first <= begin <= last]
            for first, last in found[:1]:
                added += [(head, rel, tail, step) for step in _spread(max(first, begin), last)]
        elif change.op == "end":
            assert change.at is not None
            # An end of the past is learnt for the time since then.
            steps = [step for step in _spread(clock.step(change.at), now) if not _covers(holds, step)]
            ended += [(head, rel, tail, step) for step in steps]
        elif change.op == "retract":
            first = 0 if change.at is None else clock.step(change.at)
            steps = [step for step in _spread(first, now) if not _covers(holds, step)]
            retracted += [(head, rel, tail, step) for step in steps]
    return ChangedFacts(*(torch.tensor(rows, dtype=torch.long).view(-1, 4) for rows in (added, ended, retracted)))


def expired_facts(store: FactStore, before: GraphClock, after: GraphClock) -> Tensor:
    """``[n, 4]`` facts that end because the clock moves past an end that was known before, at the last step."""
    sql = (
        "SELECT DISTINCT head, rel, tail FROM facts f WHERE valid_to > ? AND valid_to <= ? AND NOT EXISTS (SELECT 1 "
        "FROM facts g WHERE g.head = f.head AND g.rel = f.rel AND g.tail = f.tail "
        "AND g.valid_from <= ? AND (g.valid_to IS NULL OR g.valid_to > ?))"
    )
    found = store.connection.execute(sql, (before.now, after.now, after.now, after.now)).fetchall()
    limit = MAX_EXPIRED if store.num_facts <= MANY_FACTS else MAX_EXPIRED_OF_MANY
    found = random.Random(len(found)).sample(found, min(len(found), limit))
    return torch.tensor([(*row, after.num_steps - 1) for row in found], dtype=torch.long).view(-1, 4)


def facts_of_entities(entities: Iterable[int], store: FactStore, clock: GraphClock) -> Tensor:
    """``[n, 4]`` the facts of entities, each at several steps of its interval."""
    facts = _spans(entities, store, clock).tolist()
    quads = [(*triple, step) for *triple, first, last in facts for step in _spread(first, last)]
    return torch.tensor(quads, dtype=torch.long).view(-1, 4)


def _spans(entities: Iterable[int], store: FactStore, clock: GraphClock) -> Ints:
    """``[n, 5]`` head, rel, tail, first and last step of the facts of entities, as far as they have begun."""
    facts = store.facts_of(entities)[:, 1:]
    facts = facts[facts[:, FIRST] <= clock.now]
    facts[:, LAST] -= 1
    # An open end minus an origin before the year 0 would be too large for an integer.
    facts[:, FIRST:] = np.clip(facts[:, FIRST:], clock.origin, clock.now) - clock.origin
    return facts


def _covers(intervals: Sequence[tuple[int, int]], step: int) -> bool:
    return any(first <= step <= last for first, last in intervals)


def _spread(first: int, last: int) -> list[int]:
    """Some steps from first to last, both included."""
    return sorted({round(x) for x in np.linspace(first, last, _VISITS)})


def replay_quads(store: FactStore, clock: GraphClock, size: int, rng: np.random.Generator) -> Tensor:
    """``[size, 4]`` (fact, step) pairs of all steps, drawn uniformly."""
    quads = sample_quads(store, size, rng, clock.now + 1)
    quads[:, TIME] = np.clip(quads[:, TIME] - clock.origin, 0, clock.num_steps - 1)
    return torch.from_numpy(quads)


def replay_of_entities(
    entities: Iterable[int], store: FactStore, clock: GraphClock, size: int, rng: np.random.Generator
) -> Tensor:
    """``[n, 4]`` at most ``size`` facts of entities, each at a random step of its interval."""
    facts = rng.permutation(_spans(entities, store, clock))[:size]
    facts[:, TIME] = rng.integers(facts[:, FIRST], facts[:, LAST], endpoint=True)
    return torch.from_numpy(facts[:, : TIME + 1])


def older_facts(store: FactStore, clock: GraphClock, size: int, seed: int) -> Tensor:
    """A sample of (fact, step) pairs for the gate, half of them of the last step and half of all steps."""
    past = replay_quads(store, clock, 4 * size, np.random.default_rng(seed))
    now, half = clock.num_steps - 1, size // 2
    current = past.clone()
    current[:, TIME] = now
    current = some_quads(torch.unique(current, dim=0), 2 * half, seed)
    current = current[hold(current, store, clock)][:half]
    return torch.cat([current, torch.unique(past[:half], dim=0)])


def hold(quads: Tensor, store: FactStore, clock: GraphClock) -> Tensor:
    """``[n]`` which facts hold at the step of their quad."""
    found = []
    for head, rel, tail, step in quads.tolist():
        found.append(any(fact.holds(clock.origin + step) for fact in store.intervals(head, rel, tail)))
    return torch.tensor(found, dtype=torch.bool)


def some_quads(quads: Tensor, size: int, seed: int) -> Tensor:
    """At most ``size`` quads, in a random order."""
    return quads[torch.randperm(len(quads), generator=make_generator(seed, "gate"))[:size]]


def first_of_each(quads: Tensor) -> Tensor:
    """The first quad of each triple."""
    places = np.unique(quads[:, :3].numpy(), axis=0, return_index=True)[1]
    return quads[np.sort(places)]
