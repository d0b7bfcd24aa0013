"""Rows of the table of facts: how they are read, and samples of them."""

from __future__ import annotations

import json
import sqlite3
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tkg_incremental.live.records import OPEN, Fact, GraphFolderError

if TYPE_CHECKING:
    from tkg_incremental.live.store import FactStore

Ints = NDArray[np.int64]
COLUMNS = "id, head, rel, tail, valid_from, valid_to"
CLOSED_COLUMNS = f"id, head, rel, tail, valid_from, coalesce(valid_to, {OPEN})"
# Up to this number of facts, pairs are drawn from a list of all durations.
SMALL = 50_000


def read_array(cursor: sqlite3.Cursor, width: int) -> Ints:
    """``[n, width]`` the rows of a query with integers alone."""
    try:
        values = np.fromiter(chain.from_iterable(cursor), np.int64)
    except (TypeError, ValueError, OverflowError) as error:  # SQLite keeps text in a column of integers
        raise GraphFolderError(f"the fact store is damaged: expected integers ({error})") from None
    return values.reshape(-1, width)


def read_fact(row: tuple[Any, ...]) -> Fact:
    """A fact of a row with :data:`COLUMNS`."""
    fact = Fact(*row)
    if not all(type(value) is int for value in row[:5]) or type(fact.valid_to) not in (int, type(None)):
        raise GraphFolderError(f"the fact store is damaged: expected integers (got {fact})")
    return fact


def facts_at(revision: int | None) -> str:
    """The facts of a revision of the store, by default the present ones, as SQL."""
    if revision is None:
        return "facts"
    return (
        f"(SELECT {COLUMNS} FROM facts WHERE since <= {int(revision)} UNION ALL "
        f"SELECT {COLUMNS} FROM versions WHERE since <= {int(revision)} AND {int(revision)} < until)"
    )


def sample_quads(store: FactStore, size: int, rng: np.random.Generator, before: int) -> Ints:
    """``[size, 4]`` head, rel, tail and instant: drawn uniformly, with replacement, from all pairs of a fact and an
    instant at which it holds, before a given one. Empty if there are none.

    A random id and a random instant are drawn and kept if that fact holds at that instant, which is uniform over the
    pairs. The cost follows ``size`` times the ratio of the covered time to the mean duration of a fact. Where that
    ratio is large, all durations are read instead.
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


def _pairs_that_hold(store: FactStore, ids: Ints, instants: Ints) -> Ints:
    distinct, inverse = np.unique(ids, return_inverse=True)
    sql = f"SELECT {CLOSED_COLUMNS} FROM facts WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    rows = read_array(store.connection.execute(sql, (json.dumps(distinct.tolist()),)), 6)
    if not len(rows):
        return np.empty((0, 4), np.int64)
    place = np.minimum(np.searchsorted(rows[:, 0], distinct), len(rows) - 1)
    is_there = (rows[place, 0] == distinct)[inverse]
    drawn = rows[place[inverse]]
    holds = is_there & (drawn[:, 4] <= instants) & (instants < drawn[:, 5])
    return np.column_stack([drawn[holds, 1:4], instants[holds]])


def _sample_by_duration(store: FactStore, size: int, rng: np.random.Generator, before: int) -> Ints:
    _, *triple, valid_from, valid_to = store.facts_arrays()
    valid_to = np.minimum(valid_to, before)
    ends = np.cumsum(np.maximum(valid_to - valid_from, 0))
    if not len(ends) or ends[-1] == 0:
        return np.empty((0, 4), np.int64)
    drawn = rng.integers(0, ends[-1], size)
    rows = np.searchsorted(ends, drawn, side="right")
    return np.column_stack([*(column[rows] for column in triple), valid_to[rows] - (ends[rows] - drawn)])
