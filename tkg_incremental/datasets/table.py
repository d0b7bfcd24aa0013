"""Facts with a time or an interval, from a delimited file or a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data.dates import instant_of
from tkg_incremental.data.units import Period, convert
from tkg_incremental.datasets.columns import find_columns
from tkg_incremental.datasets.lines import DataError, wrong_columns
from tkg_incremental.datasets.readers import Source, cell_text, is_frame, read_records, source_name

#: Instants that stand for an open start and an open end.
START, END = -(2**62), 2**62


@dataclass
class Table:
    """A table of facts: its columns as they are written, and its dates.

    Args:
        path: The file, for errors.
        lines: The line of each fact, for errors; :obj:`None` if rows are counted instead.
        head: Head of each fact.
        rel: Relation of each fact.
        tail: Tail of each fact.
        start: Start of each fact; empty or :obj:`None` where it is open.
        end: End of each fact, likewise.
        is_point: Whether there is one time per fact; ``start`` and ``end`` are the same then.
        may_have_header: Whether the first fact may be a header that was not recognised.
        starts: The period of every start that occurs, by the text (or object) in which it is written; :obj:`None` if it
            is open. See :func:`~tkg_incremental.datasets.periods.read_periods`.
        ends: The period of every end that occurs, likewise.
    """

    path: Path
    lines: Sequence[int] | None
    head: list[str]
    rel: list[str]
    tail: list[str]
    start: Sequence[Any]
    end: Sequence[Any]
    is_point: bool
    may_have_header: bool = False
    starts: Mapping[Any, Period | None] = field(default_factory=dict)
    ends: Mapping[Any, Period | None] = field(default_factory=dict)

    def error(self, row: int | None, problem: str) -> DataError:
        """The error of a fact, or of the whole file."""
        return row_error(self.path, self.lines, row, problem)

    def periods(self) -> tuple[set[Period], set[Period]]:
        """The distinct starts and ends that are not open."""
        starts, ends = ({each for each in found.values() if each is not None} for found in (self.starts, self.ends))
        return starts, ends

    def find(self, period: Period) -> tuple[int, str] | None:
        """The first row with a date, and the date as it is written."""
        for column, periods in ((self.start, self.starts), (self.end, self.ends)):
            for row, written in enumerate(column):
                if periods[written] == period:
                    return row, str(written).strip()
        return None

    def count(self) -> int:
        """Number of starts and ends that are not open."""
        columns = ((self.start, self.starts), (self.end, self.ends))
        return sum(sum(periods[written] is not None for written in column) for column, periods in columns)

    def instants(self, unit: str) -> tuple[Tensor, Tensor]:
        """First and last instant of every fact, ``[F]`` each; :data:`START` and :data:`END` where they are open."""
        start = self._convert(self.start, self.starts, unit, START)
        end = self._convert(self.end, self.ends, unit, END)
        if wrong := (start > end).nonzero()[:, 0].tolist():
            row = wrong[0]
            between = f"{str(self.start[row]).strip()} … {str(self.end[row]).strip()}"
            raise self.error(row, f"expected a start that is not after the end (got {between})")
        return start, end

    def _convert(self, column: Sequence[Any], periods: Mapping[Any, Period | None], unit: str, missing: int) -> Tensor:
        def one(written: Any) -> int:
            period = periods[written]
            assert period is not None
            # An interval may be written in coarser dates: it starts and ends with them. An event may not.
            return instant_of(period, unit, written) if self.is_point else convert(period, unit)[missing == END]

        # Many texts may stand for one period: seconds are read as hours.
        example = {period: written for written, period in periods.items() if period is not None}
        converted = self.read_each(column, example.values(), one)
        values: dict[Period | None, int] = {period: converted[written] for period, written in example.items()}
        values[None] = missing
        return torch.tensor([values[periods[written]] for written in column], dtype=torch.long)

    def read_each(self, column: Sequence[Any], distinct: Iterable[Any], read: Callable[[Any], Any]) -> dict[Any, Any]:
        """Reads every distinct value of a column; errors name the first row that has it."""
        values = {}
        for written in distinct:
            try:
                values[written] = read(written)
            except (ValueError, OverflowError) as error:
                row = next(row for row, other in enumerate(column) if other is written or other == written)
                is_header = row == 0 and self.may_have_header
                hint = "; if this is a header, name its columns with columns={'head': …}" if is_header else ""
                raise self.error(row, f"{error}{hint}") from None
        return values

    def __len__(self) -> int:
        return len(self.head)


def row_error(path: Path, lines: Sequence[int] | None, row: int | None, problem: str) -> DataError:
    """The error of a row: by its line, or where there are no lines by its number."""
    if lines is None:
        return DataError(path, None if row is None else row + 1, problem, "row")
    return DataError(path, None if row is None else lines[row], problem)


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
    path = source_name(source)
    header, rows, lines = read_records(source, delimiter)
    if not rows:
        what = "row (the data frame" if is_frame(source) else "row (the file" if lines is None else "line (the file"
        raise DataError(path, None, f"expected at least one {what} is empty)")
    first = [str(field) for field in rows[0]] if header is None else header
    line = None if header is not None or lines is None else lines[0]
    places, has_header = find_columns(path, line, first, columns, surely_header=header is not None)
    if header is None and has_header and lines is not None:
        rows, lines = rows[1:], lines[1:]
        if not rows:
            raise DataError(path, None, "expected at least one fact below the header")
    if set(map(len, rows)) != {len(first)}:
        row = next(row for row, fields in enumerate(rows) if len(fields) != len(first))
        raise wrong_columns(path, row + 1 if lines is None else lines[row], (len(first),), list(map(str, rows[row])))
    cells = list(zip(*rows, strict=True))
    head, rel, tail = (_names(path, lines, role, cells[places[role]]) for role in ("head", "rel", "tail"))
    is_point, may_have_header = "time" in places, header is None and not has_header and line == 1
    start = cells[places["time" if is_point else "start"]]
    end: Sequence[Any] = cells[places["end"]] if "end" in places else [None] * len(rows)
    return Table(path, lines, head, rel, tail, start, start if is_point else end, is_point, may_have_header)


def _names(path: Path, lines: Sequence[int] | None, role: str, cells: Sequence[Any]) -> list[str]:
    names = [cell_text(cell) for cell in cells]
    if "" in set(names):
        row = names.index("")
        got = "an empty field" if isinstance(cells[row], str) else repr(cells[row])
        raise row_error(path, lines, row, f"expected a {role} (got {got})")
    return names
