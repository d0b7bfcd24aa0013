"""The table of facts: look-ups, whose cost follows the answer and not the number of facts, and samples."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tkg_incremental.live.names import Names
from tkg_incremental.live.records import OPEN, Fact
from tkg_incremental.live.schema import StoreError

Ints = NDArray[np.int64]
COLUMNS = "id, head, rel, tail, valid_from, valid_to"
_CLOSED_COLUMNS = f"id, head, rel, tail, valid_from, coalesce(valid_to, {OPEN})"
# Up to this number of facts, pairs are drawn from a list of all durations.
SMALL = 50_000


def read_array(cursor: sqlite3.Cursor, width: int) -> Ints:
    """``[n, width]`` the rows of a query with integers alone."""
    try:
        values = np.fromiter(chain.from_iterable(cursor), np.int64)
    except (TypeError, ValueError, OverflowError) as error:  # SQLite keeps text in a column of integers
        raise StoreError(f"the fact store is damaged: expected integers ({error})") from None
    return values.reshape(-1, width)


def _fact(row: tuple[Any, ...]) -> Fact:
    fact = Fact(*row)
    if not all(type(value) is int for value in row[:5]) or type(fact.valid_to) not in (int, type(None)):
        raise StoreError(f"the fact store is damaged: expected integers (got {fact})")
    return fact


class FactTable:
    """Names and facts of a store.

    Look-ups take a ``revision``: the facts as they were recorded at that revision of the store, by default the
    present ones. :meth:`FactStore.state_at` gives the revision of a recorded instant.

    Args:
        connection: Connection to the store.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.entities, self.relations = Names(connection, "entity"), Names(connection, "relation")

    @property
    def num_entities(self) -> int:
        """Number of entity ids, those of erased entities included."""
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """Number of relation ids."""
        return len(self.relations)

    @property
    def num_facts(self) -> int:
        """Number of facts (intervals)."""
        counted = self.connection.execute("SELECT value FROM meta WHERE key = 'facts'").fetchone()
        # A store of an earlier version keeps no count.
        return int((counted or self.connection.execute("SELECT count(*) FROM facts").fetchone())[0])

    @staticmethod
    def source(revision: int | None) -> str:
        """The facts of a revision, as SQL."""
        if revision is None:
            return "facts"
        return (
            f"(SELECT {COLUMNS} FROM facts WHERE since <= {int(revision)} UNION ALL "
            f"SELECT {COLUMNS} FROM versions WHERE since <= {int(revision)} AND {int(revision)} < until)"
        )

    def _facts(self, where: str, values: tuple[int, ...], revision: int | None) -> Iterator[Fact]:
        rows = self.connection.execute(f"SELECT {COLUMNS} FROM {self.source(revision)} WHERE {where}", values)
        return map(_fact, rows)

    def answers(
        self,
        head: int | None,
        rel: int,
        tail: int | None,
        at: int | None = None,
        revision: int | None = None,
        limit: int = -1,
    ) -> list[Fact]:
        """Known facts that match a question, by id.

        Args:
            head: Entity id, or ``None`` if it is asked for.
            rel: Relation id.
            tail: Entity id, or ``None`` if it is asked for.
            at: Only facts that hold at this instant; ``None`` for all intervals.
            revision: The revision to look at.
            limit: Maximum number of facts; -1 for all.
        """
        if head is None and tail is None:
            raise ValueError("one of head and tail must be given (got None for both)")
        conditions, values = ["rel = ?"], [rel]
        for side, entity in (("head", head), ("tail", tail)):
            if entity is not None:
                conditions.append(f"{side} = ?")
                values.append(entity)
        if at is not None:
            conditions.append("valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)")
            values += [at, at]
        return sorted(self._facts(f"{' AND '.join(conditions)} LIMIT {int(limit)}", tuple(values), revision))

    def intervals(self, head: int, rel: int, tail: int, revision: int | None = None) -> list[Fact]:
        """The facts of a triple by their beginning. They are disjoint; one may begin where another ends."""
        return sorted(self.answers(head, rel, tail, revision=revision), key=lambda fact: fact.valid_from)

    def neighbours(self, entity: int, revision: int | None = None) -> list[Fact]:
        """All facts of an entity, on either side."""
        # Two look-ups by index: SQLite would not use both for an OR over a compound query.
        found = {*self._facts("head = ?", (entity,), revision), *self._facts("tail = ?", (entity,), revision)}
        return sorted(found)

    def facts_of(self, entities: Iterable[int]) -> Ints:
        """``[n, 6]`` the present facts of entities, on either side, by id; columns as of :meth:`facts_arrays`."""
        asked = json.dumps(list(entities))
        sides = (
            f"SELECT {_CLOSED_COLUMNS} FROM facts WHERE {side} IN (SELECT value FROM json_each(?))"
            for side in ("head", "tail")
        )
        return read_array(self.connection.execute(" UNION ".join(sides) + " ORDER BY id", (asked, asked)), 6)

    def facts_arrays(self, revision: int | None = None) -> Ints:
        """``[6, n]`` id, head, rel, tail, valid_from and valid_to of all facts by id, with :data:`OPEN` for an open
        end. Reads all facts: for training from the beginning, not for updates."""
        sql = f"SELECT {_CLOSED_COLUMNS} FROM {self.source(revision)} ORDER BY id"
        return np.ascontiguousarray(read_array(self.connection.execute(sql), 6).T)


def sample_quads(store: FactTable, size: int, rng: np.random.Generator, before: int) -> Ints:
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


def _pairs_that_hold(store: FactTable, ids: Ints, instants: Ints) -> Ints:
    distinct, inverse = np.unique(ids, return_inverse=True)
    sql = f"SELECT {_CLOSED_COLUMNS} FROM facts WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
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
