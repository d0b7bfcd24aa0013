"""Samples of the (fact, step) pairs of a store."""

from __future__ import annotations

import json

import numpy as np

from tkg_incremental.live.facts import COLUMNS, FactTable, Ints, read_array
from tkg_incremental.live.records import OPEN

__all__ = ["sample_quads"]

# Up to this number of facts, pairs are drawn from a list of all durations.
SMALL = 50_000


def sample_quads(store: FactTable, size: int, rng: np.random.Generator, before: int) -> Ints:
    """``[size, 4]`` head, rel, tail and instant: drawn uniformly, with replacement, from all pairs of a fact and an
    instant at which it holds, before a given one. Empty if there are none.

    A random id and a random instant are drawn and kept if that fact holds at that instant, which is uniform over the
    pairs. The cost follows ``size`` times the ratio of the covered time to the mean duration of a fact. Where that
    ratio is large, all durations are read instead.

    Args:
        store: The store.
        size: Number of pairs.
        rng: The random generator.
        before: Instants are smaller than this one.
    """
    # SQLite looks up one minimum or maximum, but reads the whole table for both in one query.
    sql = "SELECT coalesce((SELECT min(id) FROM facts), 0), coalesce((SELECT max(id) FROM facts), -1)"
    low, high = store.connection.execute(sql).fetchone()
    first = read_array(store.connection.execute("SELECT value FROM meta WHERE key = 'first'"), 1)
    if not len(first) or first[0, 0] >= before or size == 0:
        return np.empty((0, 4), np.int64)
    if high - low < SMALL:
        return _sample_by_duration(store, size, rng, before)
    found: list[Ints] = []
    kept, batch = 0, 4096
    while kept < size:
        ids, instants = rng.integers(low, high + 1, batch), rng.integers(first[0, 0], before, batch)
        found.append(_pairs_that_hold(store, ids, instants))
        kept += len(found[-1])
        if len(found) == 1 and kept < batch / 64:
            return _sample_by_duration(store, size, rng, before)
        batch = min(max(4096, int(1.1 * (size - kept) * batch / max(len(found[-1]), 1))), 1 << 18)
    return np.concatenate(found)[:size]


def _pairs_that_hold(store: FactTable, ids: Ints, instants: Ints) -> Ints:
    distinct, inverse = np.unique(ids, return_inverse=True)
    columns = COLUMNS.replace("valid_to", f"coalesce(valid_to, {OPEN})")
    sql = f"SELECT {columns} FROM facts WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    rows = read_array(store.connection.execute(sql, (json.dumps(distinct.tolist()),)), 6)
    if not len(rows):
        return np.empty((0, 4), np.int64)
    place = np.minimum(np.searchsorted(rows[:, 0], distinct), len(rows) - 1)
    is_there = (rows[place, 0] == distinct)[inverse]
    drawn = rows[place[inverse]]
    holds = is_there & (drawn[:, 4] <= instants) & (instants < drawn[:, 5])
    return np.column_stack([drawn[holds, 1:4], instants[holds]])


def _sample_by_duration(store: FactTable, size: int, rng: np.random.Generator, before: int) -> Ints:
    _, *triple, valid_from, valid_to = store.facts_arrays()
    valid_to = np.minimum(valid_to, before)
    ends = np.cumsum(np.maximum(valid_to - valid_from, 0))
    if not len(ends) or ends[-1] == 0:
        return np.empty((0, 4), np.int64)
    drawn = rng.integers(0, ends[-1], size)
    rows = np.searchsorted(ends, drawn, side="right")
    return np.column_stack([*(column[rows] for column in triple), valid_to[rows] - (ends[rows] - drawn)])
