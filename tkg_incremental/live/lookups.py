"""Look-ups in the fact store. Their cost follows the answer, not the number of facts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tkg_incremental.live.records import OPEN, Fact, Interval
from tkg_incremental.live.schema import StoreError

__all__ = ["FactArrays", "FactLookups", "Pairs"]

Ints = NDArray[np.int64]
COLUMNS = "id, head, rel, tail, valid_from, valid_to"
CLOSED_COLUMNS = f"id, head, rel, tail, valid_from, coalesce(valid_to, {OPEN})"
# Up to this number of facts, pairs are drawn from a list of all durations.
SMALL = 50_000
# Stretches of ids that a sample of a type is taken from.
_STRETCHES = 50


class FactArrays(NamedTuple):
    """All facts as arrays of one length. ``valid_to`` is :data:`OPEN` for an open end."""

    id: Ints
    head: Ints
    rel: Ints
    tail: Ints
    valid_from: Ints
    valid_to: Ints


class Pairs(NamedTuple):
    """(fact, step) pairs as arrays of one length."""

    id: Ints
    head: Ints
    rel: Ints
    tail: Ints
    step: Ints


def _array(cursor: sqlite3.Cursor, width: int) -> Ints:
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


class FactLookups:
    """The reading half of :class:`~tkg_incremental.live.FactStore`.

    Look-ups take a ``revision``: the facts as they were recorded at that revision of the store, by default the
    present ones. :meth:`FactStore.revision_at` gives the revision of a recorded instant.
    """

    connection: sqlite3.Connection
    _durations: tuple[int, FactArrays] | None = None

    @property
    def revision(self) -> int:
        """Number of the last revision."""
        return int(self.connection.execute("SELECT coalesce(max(number), 0) FROM revisions").fetchone()[0])

    def _source(self, revision: int | None) -> str:
        if revision is None:
            return "facts"
        revision = int(revision)
        return (
            f"(SELECT {COLUMNS} FROM facts WHERE since <= {revision} UNION ALL "
            f"SELECT {COLUMNS} FROM versions WHERE since <= {revision} AND {revision} < until)"
        )

    def _facts(self, where: str, values: tuple[int, ...], revision: int | None) -> Iterator[Fact]:
        rows = self.connection.execute(f"SELECT {COLUMNS} FROM {self._source(revision)} WHERE {where}", values)
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

    def intervals(self, head: int, rel: int, tail: int, revision: int | None = None) -> list[Interval]:
        """The intervals of a triple, in order. They are disjoint; one may begin where another ends."""
        found = self.answers(head, rel, tail, revision=revision)
        return sorted((Interval(fact.valid_from, fact.valid_to) for fact in found), key=lambda found: found.valid_from)

    def neighbours(self, entity: int, revision: int | None = None) -> list[Fact]:
        """All facts of an entity, on either side."""
        # Two look-ups by index: SQLite would not use both for an OR over a compound query.
        found = {*self._facts("head = ?", (entity,), revision), *self._facts("tail = ?", (entity,), revision)}
        return sorted(found)

    def type_members(self, rel: int, side: str, revision: int | None = None) -> Ints:
        """Ids of the entities that have stood on a side of a relation, in order.

        Args:
            rel: Relation id.
            side: ``"head"`` or ``"tail"``.
            revision: The revision to look at. Reads all facts, if it is given.
        """
        if side not in ("head", "tail"):
            raise ValueError(f"side must be 'head' or 'tail' (got {side!r})")
        if revision is not None:
            sql = f"SELECT DISTINCT {side} FROM {self._source(revision)} WHERE rel = ? ORDER BY {side}"
            return _array(self.connection.execute(sql, (rel,)), 1)[:, 0]
        sql = "SELECT entity FROM members WHERE rel = ? AND side = ? ORDER BY entity"
        return _array(self.connection.execute(sql, (rel, int(side == "tail"))), 1)[:, 0]

    def some_members(self, rel: int, side: str, size: int) -> Ints:
        """At most ``size`` of :meth:`type_members`, in order: stretches of neighbouring ids at random places. They are
        the same at each call, as far as the type has not changed between."""
        where = "rel = ? AND side = ? AND entity >= ? ORDER BY entity LIMIT ?"
        sql, kind = f"SELECT entity FROM members WHERE {where}", (rel, int(side == "tail"))
        first = _array(self.connection.execute(sql, (*kind, 0, size + 1)), 1)[:, 0]
        if len(first) <= size:
            return first
        # Places in a power of two, so that they stay where they are while ids are added; up to half of them are empty.
        last = self.connection.execute("SELECT max(entity) FROM members WHERE rel = ? AND side = ?", kind).fetchone()[0]
        drawn = np.random.default_rng(kind).integers(0, 1 << int(last).bit_length(), 4 * _STRETCHES)
        places, length = drawn[drawn <= last][:_STRETCHES].tolist(), -(-size // _STRETCHES)
        found = [_array(self.connection.execute(sql, (*kind, at, length)), 1)[:, 0] for at in places]
        return np.unique(np.concatenate(found))[:size]

    def spans(self, rel: int, side: str, now: int, limit: int, revision: int | None = None) -> Ints:
        """``[n, 3]`` entity on a side, beginning and end of at most ``limit`` facts of a relation. An open end is
        ``now``."""
        columns = f"{side}, valid_from, coalesce(valid_to, ?)"
        if revision is not None:
            sql = f"SELECT {columns} FROM {self._source(revision)} WHERE rel = ? LIMIT ?"
            return _array(self.connection.execute(sql, (now, rel, limit)), 3)
        # By entities of the relation: there is no index of facts by relation alone.
        sql = (
            f"SELECT {columns} FROM members m CROSS JOIN facts f ON f.{side} = m.entity AND f.rel = m.rel "
            "WHERE m.rel = ? AND m.side = ? LIMIT ?"
        )
        return _array(self.connection.execute(sql, (now, rel, int(side == "tail"), limit)), 3)

    def holding(self, at: int, revision: int | None = None) -> int:
        """Number of facts that hold at an instant. Reads all facts."""
        sql = f"SELECT count(*) FROM {self._source(revision)} WHERE valid_from <= ? AND coalesce(valid_to, {OPEN}) > ?"
        return int(self.connection.execute(sql, (at, at)).fetchone()[0])

    @property
    def num_facts(self) -> int:
        """Number of facts (intervals)."""
        counted = self.connection.execute("SELECT value FROM meta WHERE key = 'facts'").fetchone()
        # A store of an earlier version keeps no count.
        return int((counted or self.connection.execute("SELECT count(*) FROM facts").fetchone())[0])

    def facts_arrays(self, revision: int | None = None) -> FactArrays:
        """All facts, ordered by id. Reads all facts: for training from the beginning, not for updates.

        Args:
            revision: The revision to look at.
        """
        sql = f"SELECT {CLOSED_COLUMNS} FROM {self._source(revision)} ORDER BY id"
        return FactArrays(*np.ascontiguousarray(_array(self.connection.execute(sql), 6).T))

    def sample_pairs(self, size: int, rng: np.random.Generator, before: int) -> Pairs:
        """Draws (fact, step) pairs uniformly, with replacement, from all pairs with a step before a given one.

        A random id and a random step are drawn and kept if that fact holds at that step, which is uniform over the
        pairs. The cost follows ``size`` times the ratio of the covered time to the mean duration of a fact. Where
        that ratio is large, the durations are read once for each revision instead.

        Args:
            size: Number of pairs.
            rng: The random generator.
            before: Steps are smaller than this one.
        """
        # SQLite looks up one minimum or maximum, but reads the whole table for both in one query.
        sql = "SELECT coalesce((SELECT min(id) FROM facts), 0), coalesce((SELECT max(id) FROM facts), -1)"
        low, high = self.connection.execute(sql).fetchone()
        first = _array(self.connection.execute("SELECT value FROM meta WHERE key = 'first'"), 1)
        if not len(first) or first[0, 0] >= before or size == 0:
            return Pairs(*np.empty((5, 0), np.int64))
        if high - low < SMALL:
            return self._sample_by_duration(size, rng, before)
        found: list[Ints] = []
        kept, batch = 0, 4096
        while kept < size:
            ids, steps = rng.integers(low, high + 1, batch), rng.integers(first[0, 0], before, batch)
            pairs = self._pairs_that_hold(ids, steps)
            found.append(pairs)
            kept += pairs.shape[1]
            if kept < batch * len(found) / 64 and len(found) == 1:
                return self._sample_by_duration(size, rng, before)
            batch = min(max(4096, int(1.1 * (size - kept) * batch / max(pairs.shape[1], 1))), 1 << 18)
        return Pairs(*np.concatenate(found, axis=1)[:, :size])

    def _pairs_that_hold(self, ids: Ints, steps: Ints) -> Ints:
        distinct, inverse = np.unique(ids, return_inverse=True)
        sql = f"SELECT {CLOSED_COLUMNS} FROM facts WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        rows = _array(self.connection.execute(sql, (json.dumps(distinct.tolist()),)), 6)
        place = np.searchsorted(rows[:, 0], distinct)
        place[place == len(rows)] = 0
        if not len(rows):
            return np.empty((5, 0), np.int64)
        there = (rows[place, 0] == distinct)[inverse]
        drawn = rows[place[inverse]]
        holds = there & (drawn[:, 4] <= steps) & (steps < drawn[:, 5])
        return np.concatenate([drawn[holds, :4].T, steps[None, holds]])

    def _sample_by_duration(self, size: int, rng: np.random.Generator, before: int) -> Pairs:
        revision = self.revision
        if self._durations is None or self._durations[0] != revision or self.connection.in_transaction:
            self._durations = (revision, self.facts_arrays())
        facts = self._durations[1]
        durations = np.clip(np.minimum(facts.valid_to, before) - facts.valid_from, 0, None)
        ends = np.cumsum(durations)
        if self.connection.in_transaction:  # a preview may be undone, and its revision number used again
            self._durations = None
        if not len(ends) or ends[-1] == 0:
            return Pairs(*np.empty((5, 0), np.int64))
        drawn = rng.integers(0, ends[-1], size)
        rows = np.searchsorted(ends, drawn, side="right")
        steps = np.minimum(facts.valid_to[rows], before) - (ends[rows] - drawn)
        return Pairs(facts.id[rows], facts.head[rows], facts.rel[rows], facts.tail[rows], steps)
