"""Reads changes from CSV, TSV, JSON lines and Parquet files, data frames and sequences."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.columns import OP_COLUMNS, check_twice, column_key, find_name, recognise
from tkg_incremental.datasets.lines import DataError, read_text
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.periods import is_no_date, is_open
from tkg_incremental.datasets.readers import cell_text, is_delimited, is_frame, sniff, source_name
from tkg_incremental.datasets.readers import read_records as read_table
from tkg_incremental.live.records import OPEN, Change, Rejection

logger = logging.getLogger(__name__)

OP_NAMES = {"add": "add", "+": "add", "end": "end", "-": "end", "retract": "retract"}
POSITIONS = ("op", "head", "rel", "tail", "at", "end")


def parse_record(
    record: Mapping[str, Any], line: int, parse: Callable[[str], int], at: int | None
) -> Change | Rejection:
    """Makes a change of a record: values by column, which are ``op``, ``head``, ``rel``, ``tail``, ``at`` or ``start``,
    and for an addition ``end``, the last instant at which the fact holds. ``parse`` makes an instant of a
    text, :data:`OPEN` of the end of an open interval, and ``at`` is the instant of additions and ends without one."""
    values = {column: cell_text(value) for column, value in record.items()}
    if "problem" in record:
        return Rejection(line, values["text"], values["problem"])
    try:
        return _parse(values, line, parse, at)
    except ValueError as error:
        return Rejection(line, ", ".join(value for value in values.values() if value), str(error))


def _parse(values: Mapping[str, str], line: int, parse: Callable[[str], int], at: int | None) -> Change:
    op = OP_NAMES.get(values.get("op", "").lower())
    if op is None:
        raise ValueError(f"op must be one of add, end, retract, + and - (got {values.get('op', '')!r})")
    missing = [column for column in ("head", "rel", "tail") if not values.get(column)]
    if missing:
        raise ValueError(f"{' and '.join(missing)} missing")
    dates = {column: values[column] for column in ("at", "start") if not is_no_date(values.get(column, ""))}
    begins = {_instant(column, text, parse) for column, text in dates.items()}
    if len(begins) > 1:
        remedy = "choose a column with columns={'start': …}, on the command line --columns start=…"
        raise ValueError(f"it has two times, at {dates['at']} and start {dates['start']}; {remedy}")
    begin = begins.pop() if begins else None
    end = values.get("end", "")
    last = None if is_open(end, is_end=True) else _instant("end", end, parse)
    if last == OPEN:
        last = None
    if last is not None and op != "add":
        raise ValueError(f"only an addition has an end column (got op {op!r}; its time belongs in at)")
    if begin is None and op != "retract":
        begin = at
        if begin is None:
            raise ValueError("it has no time, and none was given for the file")
    if not all(number is None or -(2**62) < number < 2**62 for number in (begin, last)):
        raise ValueError("its time is out of range")
    if last is not None and begin is not None and last < begin:
        raise ValueError("the end is before its beginning")
    until = None if last is None else last + 1
    return Change(op, values["head"], values["rel"], values["tail"], begin, until, line)


def _instant(column: str, text: str, parse: Callable[[str], int]) -> int:
    try:
        return int(parse(text))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{column} {text!r} is no time ({error})") from None


def read_records(source: Any, read: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines and records of a file or data frame, which :mod:`~tkg_incremental.datasets.readers` reads, or of a sequence
    of mappings or tuples. Columns have their usual names or those of ``read``."""
    if is_frame(source) or isinstance(source, (str, os.PathLike)):
        yield from _read_table(source, read)
    elif isinstance(source, Iterable):
        for number, row in enumerate(source, 1):
            yield number, _from_row(row, number, read)
    else:
        raise TypeError(f"changes must be a path, a data frame or a sequence (got {type(source).__name__})")


def find_columns(names: Sequence[str], read: ReadOptions) -> dict[str, int]:
    """Positions of the columns ``op``, ``head``, ``rel``, ``tail``, ``at``, ``start`` and ``end`` in a header."""
    keys = list(map(column_key, names))
    ops = [place for place, key in enumerate(keys) if key in OP_COLUMNS]
    mapped = read.columns if isinstance(read.columns, Mapping) else {}
    found = {role: find_name(names, name) for role, name in mapped.items() if isinstance(name, str)}
    given = {"start" if role == "time" else role: place for role, place in found.items() if place is not None}
    usual = recognise(["" if place in ops else name for place, name in enumerate(names)])
    if "at" in keys:
        usual["at"] = keys.index("at")
    elif "time" in usual and "start" not in given:
        usual["at"] = usual["time"]
    if ops:
        usual["op"] = ops[0]
    places = {role: place for role, place in usual.items() if role != "time" and place not in given.values()} | given
    return dict(sorted(places.items(), key=itemgetter(1)))


def _from_row(row: Any, line: int, read: ReadOptions) -> dict[str, Any]:
    if isinstance(row, Mapping):
        values = list(row.values())
        return {role: values[place] for role, place in find_columns(list(map(str, row)), read).items()}
    if isinstance(row, Sequence) and not isinstance(row, str) and len(row) <= len(POSITIONS):
        return dict(zip(POSITIONS, row, strict=False))
    raise DataError("<changes>", line, f"expected a mapping or (op, head, rel, tail, at, end) (got {row!r})")


def _read_table(source: Any, read: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows with the names of their columns. Other columns are left out."""
    path = source_name(source)
    header, rows, lines = read_table(source, _delimiter(path, read) if is_delimited(source) else None)
    lines = range(1, len(rows) + 1) if lines is None else lines
    if header is None and rows:
        header = list(rows[0])
        if header[0].strip().lower() in OP_NAMES and not {"head", "tail"} <= find_columns(header, read).keys():
            header, read = list(POSITIONS), ReadOptions()
        else:
            rows, lines = rows[1:], lines[1:]
    if not header:
        return  # a day without changes
    places = find_columns(header, read)
    _check_columns(path, header, places, read)
    for line, row in zip(lines, rows, strict=True):
        if len(row) > len(header):  # rejected, with the others of the file
            problem = f"expected {len(header)} fields (got {len(row)})"
            yield line, {"problem": problem, "text": ", ".join(map(str, row))}
        else:
            yield line, {role: row[place] for role, place in places.items() if place < len(row)}


def _delimiter(path: Path, read: ReadOptions) -> str:
    """That of the graph's first file, if the first line has it."""
    text = read_text(path)
    first = text.lstrip("\r\n").split("\n", 1)[0]
    return read.delimiter if read.delimiter and read.delimiter in first else sniff(path, text, _has_op)


def _has_op(fields: Sequence[str]) -> bool:
    """Whether a first record is a header with the column ``op``, or a change."""
    return fields[0].strip().lower() in OP_NAMES or any(column_key(field) in OP_COLUMNS for field in fields)


def _check_columns(path: Path, names: Sequence[str], places: Mapping[str, int], read: ReadOptions) -> None:
    if missing := [role for role in POSITIONS[:4] if role not in places]:
        remedy = f"Name them with columns={{'{missing[-1]}': …}}, on the command line --columns {missing[-1]}=…"
        if missing == ["op"]:
            remedy = "It says what a change does: add, end or retract. A full export is given as full, or --full"
        raise DataError(path, None, f"expected a column {' and '.join(missing)}. {remedy} (got {', '.join(names)})")
    mapped = read.columns.values() if isinstance(read.columns, Mapping) else ()
    usual = {role: place for role, place in places.items() if names[place].strip() not in mapped}
    check_twice(path, None, ["op" if column_key(name) in OP_COLUMNS else name for name in names], usual)
    if others := [name for place, name in enumerate(names) if place not in places.values()]:
        logger.warning("%s: columns that are not read: %s", path, ", ".join(map(repr, others)))
