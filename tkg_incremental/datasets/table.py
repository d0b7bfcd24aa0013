"""Facts with a time or an interval, from a delimited file or a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.columns import find_columns
from tkg_incremental.datasets.lines import DataError, wrong_columns
from tkg_incremental.datasets.readers import (
    Records,
    Source,
    is_delimited,
    is_frame,
    is_missing,
    read_records,
    source_name,
)

__all__ = ["Source", "Table", "is_delimited", "is_frame", "load_table", "source_name"]


@dataclass
class Table:
    """The columns of a table of facts, as they are written.

    Args:
        records: The rows, for errors.
        head: Head of each fact.
        rel: Relation of each fact.
        tail: Tail of each fact.
        start: Start of each fact; empty or :obj:`None` where it is open.
        end: End of each fact, likewise.
        is_point: Whether there is one time per fact; ``start`` and ``end`` are the same then.
        has_header: Whether the columns are named.
    """

    records: Records
    head: list[str]
    rel: list[str]
    tail: list[str]
    start: Sequence[Any]
    end: Sequence[Any]
    is_point: bool
    has_header: bool = True

    @property
    def path(self) -> Path:
        return self.records.path

    def error(self, row: int, problem: str) -> DataError:
        """The error of a fact."""
        return self.records.error(row, problem)

    def may_be_header(self, row: int) -> bool:
        """Whether a row may be a header that was not recognised."""
        return row == 0 and self.records.header is None and self.records.lines[0] == 1 and not self.has_header

    def __len__(self) -> int:
        return len(self.head)


def load_table(
    source: Source,
    columns: Mapping[str, str | int] | Sequence[str] | None = None,
    delimiter: str | None = None,
) -> Table:
    """Reads facts ``head, rel, tail, time`` or ``head, rel, tail, start, end``.

    Args:
        source: A file or a pandas DataFrame; see :func:`~tkg_incremental.datasets.readers.read_records`.
        columns: See :class:`~tkg_incremental.datasets.options.ReadOptions`.
        delimiter: What separates the fields; sniffed by default.
    """
    records = read_records(source, delimiter)
    header = records.header
    first = [str(field) for field in records.rows[0]] if header is None else header
    line = None if header is not None else records.lines[0]
    places, has_header = find_columns(records.path, line, first, columns, surely_header=header is not None)
    if header is None and has_header:
        records.rows, records.lines = records.rows[1:], records.lines[1:]
        if not records.rows:
            raise records.error(None, "expected at least one fact below the header")
    if set(map(len, records.rows)) != {len(first)}:
        row = next(row for row, fields in enumerate(records.rows) if len(fields) != len(first))
        raise wrong_columns(records.path, records.lines[row], (len(first),), list(map(str, records.rows[row])))
    cells = list(zip(*records.rows, strict=True))
    head, rel, tail = (_names(records, role, cells[places[role]]) for role in ("head", "rel", "tail"))
    if "time" in places:
        time = cells[places["time"]]
        return Table(records, head, rel, tail, time, time, True, has_header)
    end: Sequence[Any] = cells[places["end"]] if "end" in places else [None] * len(head)
    return Table(records, head, rel, tail, cells[places["start"]], end, False, has_header)


def _names(records: Records, role: str, cells: Sequence[Any]) -> list[str]:
    names = [cell.strip() if isinstance(cell, str) else _text(cell) for cell in cells]
    if "" in set(names):
        row = names.index("")
        got = "an empty field" if isinstance(cells[row], str) else repr(cells[row])
        raise records.error(row, f"expected a {role} (got {got})")
    return names


def _text(cell: Any) -> str:
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():  # a column of integers with gaps is one of floats
        return str(int(cell))
    return str(cell).strip()
