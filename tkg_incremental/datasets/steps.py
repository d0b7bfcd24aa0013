"""From the dates of facts to the steps of a time axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data import TimeAxis, bin_by_count, parse_instant
from tkg_incremental.data.dates import parse_period
from tkg_incremental.data.units import Period, check_unit, format_instant
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.outliers import find_outliers
from tkg_incremental.datasets.periods import read_periods
from tkg_incremental.datasets.table import END, START, Table
from tkg_incremental.datasets.time_units import choose_unit, finest_unit

#: How steps are made: one per unit, by count, from the first instant of each, or as an axis says.
Binning = int | TimeAxis | list[Any] | None
# Starts and ends of a step with binning="count".
_COUNT = 300


def check_binning(binning: Any, unit: str, options: ReadOptions) -> Binning:
    """Checks that the options about time fit together.

    Args:
        binning: See :class:`~tkg_incremental.datasets.TabularTKG`.
        unit: The unit, or ``"auto"``.
        options: The other options.

    Returns:
        ``binning`` without shorthands.
    """
    check_unit(unit, "auto")
    if isinstance(binning, str):
        if binning != "count":
            raise ValueError(
                f"binning must be None, 'count', a number, a list of steps or a TimeAxis; a unit goes into unit "
                f"(got {binning!r})"
            )
        binning = _COUNT
    if isinstance(binning, TimeAxis) and unit != "auto":
        raise ValueError(f"unit has no effect with a TimeAxis, which has its own: leave it out (got {unit!r})")
    final_unit = binning.unit if isinstance(binning, TimeAxis) else unit
    if final_unit == "index" and (options.dayfirst or options.date_format is not None):
        raise ValueError("dayfirst and date_format have no effect with unit 'index': leave them out")
    if isinstance(binning, int) and binning < 0:
        raise ValueError(f"binning must be at least 0 as a number of starts and ends (got {binning})")
    if binning is None or isinstance(binning, int):
        return binning
    if options.outliers == "keep":
        raise ValueError("outliers='keep' has no effect where the steps are given: leave it out")
    if isinstance(binning, TimeAxis):
        return binning
    steps = list(binning)
    if not steps:
        raise ValueError("binning must give the first instants of the steps, ascending (got none)")
    return steps


def read_dates(
    tables: Sequence[Table], binning: Binning, unit: str, options: ReadOptions, as_written: bool = False
) -> tuple[str, str]:
    """Reads the dates of all tables. Returns the unit of the axis, and why it is this one.

    Args:
        tables: The tables; train facts come first.
        binning: How steps are made.
        unit: The unit that is asked for, or ``"auto"``.
        options: How dates are read.
        as_written: See :func:`~tkg_incremental.datasets.time_units.choose_unit`.
    """
    known = binning.unit if isinstance(binning, TimeAxis) else unit
    for table in tables:
        read_periods(table, known, options.dayfirst, options.date_format)
    found, reason = _unit_of(tables, binning, unit, options, as_written)
    if found == "index" != known:  # numbers that were read as years
        for table in tables:
            read_periods(table, found)
    if options.outliers == "error" and (binning is None or isinstance(binning, int)):
        _check_outliers(tables)
    return found, reason


def _unit_of(
    tables: Sequence[Table], binning: Binning, unit: str, options: ReadOptions, as_written: bool
) -> tuple[str, str]:
    if isinstance(binning, TimeAxis):
        return binning.unit, "the unit of the given time axis"
    if unit != "auto":
        return unit, "as asked for"
    if isinstance(binning, list):
        begins = [parse_period(begin, options.dayfirst, options.date_format) for begin in binning]
        return finest_unit(begins), "the unit of the given steps"
    starts, ends = (set[Period]().union(*some) for some in zip(*(table.periods() for table in tables), strict=True))
    if not starts and not ends:
        raise tables[0].error(None, "expected a fact with a start or an end")
    is_point = any(table.is_point for table in tables)
    return choose_unit(starts, ends, sum(map(Table.count, tables)), is_point, as_written)


def _check_outliers(tables: Sequence[Table]) -> None:
    """Raises an error for dates far outside of all others."""
    dates = set[Period]().union(*(some for table in tables for some in table.periods()))
    outliers = find_outliers(sorted(dates))
    for table in tables:
        for period in outliers:
            place = table.find(period)
            if place is not None:
                row, written = place
                rest = sorted(dates - set(outliers), key=lambda period: period.value)
                more = f" ({len(outliers)} dates are)" if len(outliers) > 1 else ""
                is_alike = len({period.unit for period in rest}) == 1
                reach = f", which lie in {_show(rest[0])} … {_show(rest[-1])}" if is_alike else ""
                raise table.error(
                    row,
                    f"the date {written!r} is far from the others{reach}{more}. Correct it, leave an open start or end "
                    "empty, or pass outliers='keep', on the command line --keep-outliers",
                )


def make_axis(
    instants: Sequence[tuple[Tensor, Tensor]], binning: Binning, unit: str, options: ReadOptions, main: Table
) -> TimeAxis:
    """The axis of the facts.

    Args:
        instants: First and last instant of the facts, for each table; the train facts come first.
        binning: How steps are made.
        unit: What an instant counts.
        options: How given steps are read.
        main: The table of train facts, for errors.
    """
    if isinstance(binning, TimeAxis):
        return binning
    values = [torch.cat([start[start != START], end[end != END]]) for start, end in instants]
    if not len(values[0]):
        raise main.error(None, "expected a fact with a start or an end")
    all_values = torch.cat(values)
    first, last = int(all_values.min()), int(all_values.max())
    if binning is None:
        return TimeAxis.from_range(0 if unit == "index" else first, last, unit)
    if isinstance(binning, int):
        axis = bin_by_count(values[0], binning, unit)
        # Instants of the other splits before or after the train facts belong to the outermost steps.
        return TimeAxis((first, *axis.first[1:]), (*axis.last[:-1], last), unit)
    begins = [parse_instant(begin, unit, options.dayfirst, options.date_format) for begin in binning]
    if any(a >= b for a, b in pairwise(begins)):
        raise ValueError(f"binning must give the first instants of the steps, ascending (got {binning})")
    return TimeAxis(tuple(begins), (*(begin - 1 for begin in begins[1:]), max(last, begins[-1])), unit)


def to_steps(table: Table, start: Tensor, end: Tensor, axis: TimeAxis) -> tuple[Tensor, Tensor]:
    """First and last step of every fact, ``[F]`` each, as far as the axis reaches.

    Args:
        table: The facts, for errors.
        start: ``[F]`` first instants.
        end: ``[F]`` last instants.
        axis: The time axis.
    """
    first, last = axis.first[0], axis.last[-1]
    start, end = start.clamp(min=first), end.clamp(max=last)
    if outside := (start > end).nonzero()[:, 0].tolist():
        reach = f"{axis.labels[0]} … {axis.labels[-1]}"
        raise table.error(outside[0], f"expected a time in {reach} (the fact lies outside)")
    if isinstance(axis.first, range) and axis.first.step == 1:
        return start - first, end - first
    firsts = torch.tensor(axis.first)
    return torch.searchsorted(firsts, start, right=True) - 1, torch.searchsorted(firsts, end, right=True) - 1


def _show(period: Period) -> str:
    return format_instant(period.value, period.unit)
