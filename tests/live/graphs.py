"""A plain model of the fact store, and small graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.live import OPEN, Change, FactStore, GraphFolder, NamedFacts, Release, import_facts

Triple = tuple[str, str, str]
State = dict[Triple, list[tuple[int, int]]]

FACTS: list[tuple[str, str, str, int, int | None]] = [
    ("Ann", "leads", "R&D", 1, None),
    ("Bob", "leads", "Sales", 2, 9),
    ("Cid", "works in", "R&D", 3, None),
    ("Ann", "works in", "R&D", 1, 4),
    ("Ann", "works in", "R&D", 6, None),
]


def quick(store: FactStore) -> FactStore:
    """A store that does not wait for the disk."""
    store.connection.execute("PRAGMA synchronous = OFF")
    return store


def import_rows(store: FactStore, rows: list[tuple[str, str, str, int, int | None]], clock: int | None = None) -> int:
    """Imports facts with names."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    facts = np.empty((5, len(rows)), np.int64)
    for i, (head, rel, tail, start, end) in enumerate(rows):
        h, r = entities.setdefault(head, len(entities)), relations.setdefault(rel, len(relations))
        facts[:, i] = h, r, entities.setdefault(tail, len(entities)), start, OPEN if end is None else end
    return import_facts(store, NamedFacts("day", "", list(entities), list(relations), facts), clock)


def small_store(path: Path) -> FactStore:
    store = quick(FactStore.create(path / "facts.db", "day"))
    import_rows(store, FACTS, clock=10)
    return store


def small_graph(path: Path, rows: int = 5) -> GraphFolder:
    folder = GraphFolder.create(path, "day")
    quick(folder.store)
    import_rows(folder.store, FACTS, clock=10)
    commit(folder, small_tables(rows), None, clock=10)
    return folder


def commit(folder: GraphFolder, tables: dict[str, Tensor], changed: dict[str, Tensor] | None, **about: Any) -> Release:
    """Releases tables together with the pending updates."""
    release = folder.write_candidate(tables, changed, **about)
    folder.release(release.number)
    return release


def small_tables(rows: int = 5) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "entity": torch.randn(rows, 64, generator=generator),
        "relation": torch.randn(2, 4, generator=generator),
        "scale": torch.tensor(1.5),
    }


def apply_plainly(state: State, change: Change) -> bool:
    """The meaning of a change, on sets of intervals. Whether it fits."""
    triple = (change.head, change.rel, change.tail)
    held = state.setdefault(triple, [])
    if change.op == "retract":
        found = [pair for pair in held if change.at is None or pair[0] <= change.at < pair[1]]
        state[triple] = [pair for pair in held if pair not in found]
        return bool(found)
    assert change.at is not None
    if change.op == "end":
        for i, (start, stop) in enumerate(held):
            if start < change.at < stop:
                held[i] = (start, change.at)
                return True
        return False
    new = (change.at, OPEN if change.until is None else change.until)
    if new[0] >= new[1] or any(start < new[1] and new[0] < stop for start, stop in held):
        return False
    held.append(new)
    return True


def state_of(store: FactStore, revision: int | None = None) -> State:
    _, heads, rels, tails, starts, stops = store.facts_arrays(revision).tolist()
    state: State = {}
    triples = zip(store.entities.of(heads), store.relations.of(rels), store.entities.of(tails), strict=True)
    for (head, rel, tail), start, stop in zip(triples, starts, stops, strict=True):
        state.setdefault((str(head), str(rel), str(tail)), []).append((start, stop))
    return tidy(state)


def tidy(state: State) -> State:
    return {triple: sorted(pairs) for triple, pairs in state.items() if pairs}
