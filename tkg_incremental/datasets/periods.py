"""The dates of a table: read once per text that occurs, converted once the unit is known."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.data.dates import (
    UnreadableDateError,
    instant_of,
    is_unix,
    parse_index,
    parse_period,
    unreadable,
)
from tkg_incremental.data.units import Period, convert
from tkg_incremental.datasets.readers import is_missing

if TYPE_CHECKING:
    from tkg_incremental.datasets.table import Table

logger = logging.getLogger(__name__)

#: Instants that stand for an open start and an open end.
START, END = -(2**62), 2**62

# What stands for an end that is open, e.g. "", "-", "?", "####-##-##", "NULL", "\N", "infinity" (dumps of databases).
_OPEN = re.compile(r"[-?#\s]*|none|null|nan|nat|n/?a|<na>|\\n|-infinity", re.IGNORECASE)
_OPEN_END = re.compile(r"present|now|current|ongoing|infinity", re.IGNORECASE)
_LAST_YEAR = 9999  # 9999-12-31 is the open end of SQL databases


@dataclass
class TablePeriods:
    """The dates of a table, by the text (or object) in which they are written.

    Args:
        table: The table.
        starts: The period of every start that occurs; :obj:`None` if it is open.
        ends: The period of every end that occurs.
    """

    table: Table
    starts: Mapping[Any, Period | None]
    ends: Mapping[Any, Period | None]

    def distinct(self) -> tuple[set[Period], set[Period]]:
        """The distinct starts and ends that are not open."""
        starts = {period for period in self.starts.values() if period is not None}
        return starts, starts if self.table.is_point else {
            period for period in self.ends.values() if period is not None
        }

    def find(self, period: Period) -> tuple[int, str] | None:
        """The first row with a date, and the date as it is written."""
        for column, periods in ((self.table.start, self.starts), (self.table.end, self.ends)):
            for row, written in enumerate(column):
                if periods[written] == period:
                    return row, str(written).strip()
        return None

    def count(self) -> int:
        """Number of starts and ends that are not open."""
        columns = ((self.table.start, self.starts), (self.table.end, self.ends))
        return sum(sum(periods[written] is not None for written in column) for column, periods in columns)

    def instants(self, unit: str) -> tuple[Tensor, Tensor]:
        """First and last instant of every fact, ``[F]`` each; :data:`START` and :data:`END` where they are open."""
        start = self._convert(self.table.start, self.starts, unit, START)
        end = self._convert(self.table.end, self.ends, unit, END)
        if wrong := (start > end).nonzero()[:, 0].tolist():
            row = wrong[0]
            between = f"{str(self.table.start[row]).strip()} … {str(self.table.end[row]).strip()}"
            raise self.table.error(row, f"expected a start that is not after the end (got {between})")
        return start, end

    def _convert(self, column: Sequence[Any], periods: Mapping[Any, Period | None], unit: str, missing: int) -> Tensor:
        side = 0 if missing == START else 1

        def one(written: Any) -> int:
            period = periods[written]
            assert period is not None
            # An interval may be written in coarser dates: it starts and ends with them. An event may not.
            return instant_of(period, unit, written) if self.table.is_point else convert(period, unit)[side]

        # Many texts may stand for one period: seconds are read as hours.
        example = {period: written for written, period in periods.items() if period is not None}
        converted = read_each(self.table, column, example.values(), one)
        values: dict[Period | None, int] = {period: converted[written] for period, written in example.items()}
        values[None] = missing
        return torch.tensor([values[periods[written]] for written in column], dtype=torch.long)


def read_periods(
    table: Table, unit: str = "auto", dayfirst: bool = False, date_format: str | None = None
) -> TablePeriods:
    """Reads all dates of a table.

    Args:
        table: The table.
        unit: The unit of the axis. ``"index"`` takes integers that are not negative instead of dates.
        dayfirst: Read ``03/04/2024`` as 3 April.
        date_format: See :class:`~tkg_incremental.datasets.options.ReadOptions`.
    """

    def read(written: Any, is_end: bool) -> Period | None:
        text = written.strip() if isinstance(written, str) else "" if is_missing(written) else None
        if text is not None and not text[:1].isdigit() and _is_open(text, is_end):
            if table.is_point:
                raise ValueError(f"expected a time (got {repr(text) if text else 'an empty field'})")
            return None
        if unit == "index":
            index = parse_index(written)
            if index < 0:
                raise ValueError(f"expected a step that is not negative (got {index})")
            return Period("index", index)
        try:
            period = parse_period(written, dayfirst, date_format)
        except UnreadableDateError:
            if unit == "auto":
                raise
            raise unreadable(written, unit) from None
        # The text is looked at first: converting every end would take as long as reading it.
        may_be_last = is_end and (text is None or str(_LAST_YEAR) in text)
        return None if may_be_last and convert(period, "year")[0] == _LAST_YEAR else period

    starts = read_each(table, table.start, dict.fromkeys(table.start), lambda written: read(written, False))
    if table.is_point:
        ends = starts
    else:
        ends = read_each(table, table.end, dict.fromkeys(table.end), lambda written: read(written, True))
    if date_format is None and unit != "index":
        for written in starts:
            if isinstance(written, (str, int)) and is_unix(written):
                logger.warning("%s: dates such as %s are read as Unix seconds", table.path, written)
                break
    return TablePeriods(table, starts, ends)


def _is_open(text: str, is_end: bool) -> bool:
    return bool(_OPEN.fullmatch(text) or (is_end and _OPEN_END.fullmatch(text)))


def read_each(
    table: Table, column: Sequence[Any], distinct: Iterable[Any], read: Callable[[Any], Any]
) -> dict[Any, Any]:
    """Reads every distinct value of a column; errors name the first row that has it."""
    values = {}
    for written in distinct:
        try:
            values[written] = read(written)
        except (ValueError, OverflowError) as error:
            row = next(row for row, other in enumerate(column) if other is written or other == written)
            hint = (
                "; if this is a header, name its columns with columns={'head': …}" if table.may_be_header(row) else ""
            )
            raise table.error(row, f"{error}{hint}") from None
    return values
