"""Facts of a file or data frame, and their import into an empty store."""

from __future__ import annotations

import logging
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import torch

from tkg_incremental.data.dates import parse_instant
from tkg_incremental.data.intervals import merge_intervals
from tkg_incremental.data.units import format_instant
from tkg_incremental.datasets.numbering import number_names
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.readers import Source
from tkg_incremental.datasets.steps import read_dates
from tkg_incremental.datasets.table import END, START, load_table
from tkg_incremental.live.facts import Ints
from tkg_incremental.live.records import OPEN, GraphFolderError
from tkg_incremental.live.revisions import begin_revision, set_value
from tkg_incremental.live.schema import create_indices, drop_indices
from tkg_incremental.live.store import FactStore

logger = logging.getLogger(__name__)

CHUNK = 100_000
#: A date may move the last step by this number of steps, or by as many as the graph has. A wrong century may not.
LEAP = 1000


class NamedFacts(NamedTuple):
    """Facts and the names behind their ids.

    Args:
        unit: Unit of time.
        unit_reason: Why it was chosen.
        entities: Names of the entities by id.
        relations: Names of the relations by id.
        facts: ``[5, n]`` head, rel, tail, valid_from and valid_to. Intervals are half-open, in instants of ``unit``,
            with :data:`OPEN` for an open end.
    """

    unit: str
    unit_reason: str
    entities: list[str]
    relations: list[str]
    facts: Ints

    def rows(self) -> list[tuple[str, str, str, int, int | None]]:
        """The facts with names, as :meth:`ChangeSet.from_full_export` takes them: merged, as an import does it."""
        return [
            (self.entities[h], self.relations[r], self.entities[t], a, None if b == OPEN else b)
            for h, r, t, a, b in _merged(self.facts).T.tolist()
        ]


def read_named_facts(
    source: Source, unit: str = "auto", options: ReadOptions | None = None, first: int | None = None
) -> NamedFacts:
    """Reads facts for a live graph from a CSV, TSV, JSON lines or Parquet file, or a data frame. The unit ``"auto"`` is
    chosen from the dates. A fact without a start holds from ``first``, by default the first instant that occurs; one
    that ended before that, at its last instant alone."""
    options = options or ReadOptions()
    table = load_table(source, options.columns, options.delimiter)
    unit, reason = read_dates([table], None, unit, options, as_written=True)
    start, end = (times.numpy() for times in table.instants(unit))
    bounded = np.concatenate([start[start != START], end[end != END]])
    if first is None:
        if not len(bounded):
            raise table.error(None, "expected a fact with a start or an end")
        first = int(bounded.min())
    entities, ((head, tail),) = number_names("entity", [(table, (table.head, table.tail))])
    relations, ((rel,),) = number_names("relation", [(table, (table.rel,))])
    valid_from = np.where(start == START, np.minimum(first, end), start)
    facts = np.stack([head.numpy(), rel.numpy(), tail.numpy(), valid_from, np.where(end == END, OPEN, end + 1)])
    return NamedFacts(unit, reason, entities, relations, facts)


def last_step(named: NamedFacts, at: Any) -> int:
    """The instant of a date that is to be the last step. It is not before a beginning, nor far after all of them."""
    begin, first = int(named.facts[3].max()), int(named.facts[3].min())
    last = begin + max(LEAP, begin - first)
    instant = parse_instant(at, named.unit)
    if not begin <= instant <= last:
        low, high = format_instant(begin, named.unit), format_instant(last, named.unit)
        raise ValueError(f"at must be in {low}, the last beginning of a fact, … {high} (got {at!r})")
    return instant


def import_facts(store: FactStore, named: NamedFacts, clock: int | None = None) -> int:
    """Imports facts into an empty store, in one transaction, and returns their number.

    Overlapping intervals of one triple are merged. Facts get ids in the order of head, relation, tail and beginning.
    The clock is the last step of the graph; by default the last instant that occurs.
    """
    facts, entities = named.facts, named.entities
    sizes = len(entities), len(named.relations), len(entities)
    for name, column, size in zip(("head", "rel", "tail"), facts, sizes, strict=False):
        if len(column) and (column.min() < 0 or column.max() >= size):
            raise ValueError(f"{name} must be in 0..{size - 1} (got {column.min()}..{column.max()})")
    for row in np.flatnonzero(facts[4] <= facts[3])[:1].tolist():
        raise ValueError(f"fact {row} ends at {facts[4, row]}, which is not after its beginning at {facts[3, row]}")
    rows, facts = facts.shape[1], _merged(facts)
    count = facts.shape[1]
    if count < rows:
        merged = (
            "%d of %d facts overlap or continue others of the same head, relation and tail, and were merged with them"
        )
        logger.warning(merged, rows - count, rows)
    with store.transaction() as connection:
        if connection.execute("SELECT EXISTS (SELECT 1 FROM facts) + EXISTS (SELECT 1 FROM entities)").fetchone()[0]:
            raise GraphFolderError(f"facts can be imported into an empty store only ('{store.path}' has some)")
        revision = begin_revision(store, "import")
        drop_indices(connection)
        for table, names in (("entities", entities), ("relations", named.relations)):
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", enumerate(names))
        for low in range(0, count, CHUNK):
            *part, ends = facts[:, low : low + CHUNK].tolist()
            ends = [None if end == OPEN else end for end in ends]
            rows = zip(range(low, low + len(ends)), *part, ends, repeat(revision), strict=False)
            connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        create_indices(connection)
        for side, column in enumerate(("head", "tail")):
            counted = f"SELECT rel, {side}, {column}, count(*) FROM facts GROUP BY rel, {column}"
            connection.execute(f"INSERT INTO members {counted}")
        if count:
            last = max(int(facts[3].max()), int(np.max(facts[4], where=facts[4] != OPEN, initial=-OPEN)) - 1)
            values = {"first": int(facts[3].min()), "last_fact": count - 1, "clock": last if clock is None else clock}
            for key, value in {**values, "facts": count}.items():
                set_value(store, key, value)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count


def _merged(facts: Ints) -> Ints:
    """Sorts facts by triple and beginning, and merges the intervals of one triple that overlap or touch."""
    # Sorted rows halve the time that the indices of the store take, and keep the facts of an entity on one page.
    facts = facts[:, np.lexsort(facts[3::-1])]
    is_same = (facts[:3, 1:] == facts[:3, :-1]).all(axis=0)
    if not is_same.any():
        return facts
    key = np.concatenate([[0], np.cumsum(~is_same)])
    # Places among all instants instead of instants, which may be large; even for beginnings, odd for ends.
    instants, places = np.unique(facts[3:], return_inverse=True)
    first, end = 2 * places.reshape(2, -1)
    begins, last = merge_intervals(*map(torch.from_numpy, (key, first, end - 1)))
    merged = facts[:, begins.numpy()]
    merged[4] = instants[(last.numpy() + 1) // 2]
    return merged
