"""Bulk import of facts into an empty store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tkg_incremental.live.records import OPEN
from tkg_incremental.live.revisions import begin_revision
from tkg_incremental.live.schema import StoreError, create_indices, drop_indices
from tkg_incremental.live.store import FactStore

__all__ = ["import_arrays", "import_facts"]

CHUNK = 100_000
Ints = NDArray[np.int64]


def import_facts(
    store: FactStore,
    facts: Iterable[tuple[str, str, str, int, int | None]],
    clock: int | None = None,
) -> int:
    """Imports facts with names.

    Args:
        store: A store without facts.
        facts: Head, relation, tail, first instant and first instant at which the fact no longer holds (or ``None``).
        clock: The last step of the graph; by default the last instant that occurs.

    Returns:
        The number of facts (intervals) stored.
    """
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    parts: list[Ints] = []
    source = iter(facts)
    while chunk := list(islice(source, CHUNK)):
        rows = np.empty((5, len(chunk)), np.int64)
        heads, rels, tails, starts, ends = zip(*chunk, strict=True)
        for row, names, ids in ((0, heads, entities), (1, rels, relations), (2, tails, entities)):
            rows[row] = [ids.setdefault(name, len(ids)) for name in names]
        rows[3] = starts
        rows[4] = [OPEN if end is None else end for end in ends]
        parts.append(rows)
    columns = np.concatenate(parts, axis=1) if parts else np.empty((5, 0), np.int64)
    del parts
    head, rel, tail, valid_from, valid_to = columns
    return import_arrays(store, list(entities), list(relations), head, rel, tail, valid_from, valid_to, clock)


def import_arrays(
    store: FactStore,
    entities: Sequence[str],
    relations: Sequence[str],
    head: ArrayLike,
    rel: ArrayLike,
    tail: ArrayLike,
    valid_from: ArrayLike,
    valid_to: ArrayLike,
    clock: int | None = None,
) -> int:
    """Imports facts with ids, in one transaction.

    Overlapping intervals of one triple are merged. Facts get ids in the order of head, relation, tail and beginning.

    Args:
        store: A store without facts.
        entities: Names; position is the id.
        relations: Names; position is the id.
        head: Entity ids. Shape ``[num_facts]``, as for the following.
        rel: Relation ids.
        tail: Entity ids.
        valid_from: First instants.
        valid_to: First instants at which the facts no longer hold; :data:`OPEN` for an open end.
        clock: The last step of the graph; by default the last instant that occurs.

    Returns:
        The number of facts (intervals) stored.
    """
    columns = [np.ascontiguousarray(column, np.int64) for column in (head, rel, tail, valid_from, valid_to)]
    if len({len(column) for column in columns}) != 1:
        raise ValueError(f"columns must have one length (got {[len(column) for column in columns]})")
    for name, column, size in zip(
        ("head", "rel", "tail"), columns, (len(entities), len(relations), len(entities)), strict=False
    ):
        if len(column) and (column.min() < 0 or column.max() >= size):
            raise ValueError(f"{name} must be in 0..{size - 1} (got {column.min()}..{column.max()})")
    if np.any(columns[4] <= columns[3]):
        row = int(np.argmax(columns[4] <= columns[3]))
        raise ValueError(f"fact {row} ends at {columns[4][row]}, which is not after its beginning at {columns[3][row]}")
    # Sorted rows halve the time that the indices take, and keep the facts of an entity on one page.
    order = np.lexsort((columns[3], columns[2], columns[1], columns[0]))
    columns = [column[order] for column in columns]
    columns = _merged(columns)
    if clock is None and len(columns[0]):
        closed = columns[4][columns[4] != OPEN]
        clock = max(int(columns[3].max()), int(closed.max()) - 1 if len(closed) else int(columns[3].max()))
    with store.transaction() as connection:
        if connection.execute("SELECT EXISTS (SELECT 1 FROM facts), EXISTS (SELECT 1 FROM entities)").fetchone() != (
            0,
            0,
        ):
            raise StoreError(f"facts can be imported into an empty store only ('{store.path}' has some)")
        revision = begin_revision(store, "import")
        drop_indices(connection)
        for table, names in (("entities", entities), ("relations", relations)):
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", enumerate(names))
        count = len(columns[0])
        for low in range(0, count, CHUNK):
            part = [column[low : low + CHUNK].tolist() for column in columns]
            part[4] = [None if end == OPEN else end for end in part[4]]
            rows = zip(range(low, min(low + CHUNK, count)), *part, repeat(revision), strict=False)
            connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        create_indices(connection)
        for side, column in ((0, columns[0]), (1, columns[2])):
            keys, counts = np.unique(columns[1] * len(entities) + column, return_counts=True)
            for low in range(0, len(keys), CHUNK):
                rels, members = np.divmod(keys[low : low + CHUNK], len(entities))
                rows = zip(
                    rels.tolist(), repeat(side), members.tolist(), counts[low : low + CHUNK].tolist(), strict=False
                )
                connection.executemany("INSERT INTO members VALUES (?, ?, ?, ?)", rows)
        if count:
            connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [("first", int(columns[3].min())), ("last_fact", count - 1), ("clock", clock), ("facts", count)],
            )
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count


def _merged(columns: list[Ints]) -> list[Ints]:
    """Merges overlapping intervals of one triple. The rows are sorted by triple and beginning."""
    head, rel, tail, start, end = columns
    same = (head[1:] == head[:-1]) & (rel[1:] == rel[:-1]) & (tail[1:] == tail[:-1])
    if not same.any():
        return columns
    keep, end, last = np.ones(len(head), bool), end.copy(), -1
    for row in (np.flatnonzero(same) + 1).tolist():
        if last < 0 or not same[last:row].all():  # the first repetition of its triple
            last = row - 1
        if start[row] <= end[last]:
            end[last] = max(end[last], end[row])
            keep[row] = False
        else:
            last = row
    return [column[keep] for column in (head, rel, tail, start, end)]
