"""Facts of a file or data frame as arrays of ids and instants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tkg_incremental.datasets.numbering import Numbering
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.periods import END, START, read_periods
from tkg_incremental.datasets.readers import Source
from tkg_incremental.datasets.steps import check_outliers, unit_of
from tkg_incremental.datasets.table import load_table
from tkg_incremental.live.records import OPEN


class NamedFacts(NamedTuple):
    """Facts with names by id. Intervals are half-open, in instants of ``unit``; ``valid_to`` may be :data:`OPEN`."""

    unit: str
    unit_reason: str
    entities: list[str]
    relations: list[str]
    head: NDArray[np.int64]
    rel: NDArray[np.int64]
    tail: NDArray[np.int64]
    valid_from: NDArray[np.int64]
    valid_to: NDArray[np.int64]

    def rows(self) -> list[tuple[str, str, str, int, int | None]]:
        """The facts with names, as :meth:`ChangeSet.from_full_export` takes them."""
        columns = (self.head, self.rel, self.tail, self.valid_from, self.valid_to)
        return [
            (self.entities[h], self.relations[r], self.entities[t], a, None if b == OPEN else b)
            for h, r, t, a, b in zip(*(column.tolist() for column in columns), strict=True)
        ]


def read_named_facts(source: Source, unit: str = "auto", options: ReadOptions | None = None) -> NamedFacts:
    """Reads facts for a live graph.

    Args:
        source: A CSV, TSV, JSON lines or Parquet file, or a data frame.
        unit: Unit of time; ``"auto"`` chooses it from the dates.
        options: How the file is read.
    """
    options = options or ReadOptions()
    table = load_table(source, options.columns, options.delimiter)
    periods = read_periods(table, unit, options.dayfirst, options.date_format)
    asked = unit
    unit, reason = unit_of([periods], None, asked, options, as_written=True)
    if unit == "index" != asked:  # numbers that were read as years
        periods = read_periods(table, unit)
    if options.outliers == "error":
        check_outliers([periods])
    start, end = (times.numpy() for times in periods.instants(unit))
    bounded = np.concatenate([start[start != START], end[end != END]])
    entities, relations = Numbering("entity"), Numbering("relation")
    head, tail = (ids.numpy() for ids in entities.index_columns(table, table.head, table.tail))
    rel = relations.index_columns(table, table.rel)[0].numpy()
    # A fact without a start holds from the first instant that occurs.
    valid_from = np.where(start == START, bounded.min(), start)
    valid_to = np.where(end == END, OPEN, end + 1)
    return NamedFacts(unit, reason, entities.names, relations.names, head, rel, tail, valid_from, valid_to)
