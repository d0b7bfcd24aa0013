"""Reads changes from CSV, TSV, JSON lines and Parquet files, data frames and sequences."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.columns import OP_COLUMNS, column_key, recognise
from tkg_incremental.datasets.lines import DataError, read_fields, read_text
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.readers import is_frame, is_missing, source_name
from tkg_incremental.live.records import Change, Rejection

logger = logging.getLogger(__name__)

OP_NAMES = {"add": "add", "+": "add", "end": "end", "-": "end", "retract": "retract"}
POSITIONS = ("op", "head", "rel", "tail", "at", "end")


def parse_record(
    record: Mapping[str, Any], line: int, parse: Callable[[str], int], at: int | None
) -> Change | Rejection:
    """Makes a change of a record: values by column, which are ``op``, ``head``, ``rel``, ``tail``, ``at`` (or
    ``start``), and for an addition ``end``, the last instant at which the fact holds. ``parse`` makes an instant of
    a text, and ``at`` is the instant of additions and ends without one."""
    values = {column: "" if is_missing(value) else str(value).strip() for column, value in record.items()}
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
    instants: dict[str, int | None] = {"at": None, "end": None}
    for column in instants:
        if text := values.get(column):
            try:
                instants[column] = int(parse(text))
            except (ValueError, OverflowError) as error:
                raise ValueError(f"{column} {text!r} is no time ({error})") from None
    begin, last = instants["at"], instants["end"]
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


def read_records(source: Any, read: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines and records of a file, whose ending tells its format, a data frame, or a sequence of mappings or tuples.
    Columns have their usual names or those of ``read``."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        kind = path.suffix.lower()
        if kind in (".parquet", ".pq"):
            yield from _read_parquet(path, read)
        else:
            read_lines = _read_json_lines if kind in (".jsonl", ".ndjson", ".json") else _read_csv
            yield from read_lines(path, read_text(path), read)
    elif is_frame(source):
        rows = source.itertuples(index=False, name=None)
        yield from _named(source_name(source), [str(name) for name in source.columns], enumerate(rows, 1), read)
    elif isinstance(source, Iterable):
        for number, row in enumerate(source, 1):
            yield number, _from_row(row, Path("<changes>"), number, read)
    else:
        raise TypeError(f"changes must be a path, a data frame or a sequence (got {type(source).__name__})")


def find_columns(names: Sequence[str], read: ReadOptions) -> dict[int, str]:
    """Positions of the columns ``op``, ``head``, ``rel``, ``tail``, ``at`` and ``end`` in a header. A column may stand
    at several positions."""
    keys = [column_key(name) for name in names]
    mapped = read.columns if isinstance(read.columns, Mapping) else {}
    given = {column_key(name): role for role, name in mapped.items() if isinstance(name, str)}
    roles = {place: given[key] for place, key in enumerate(keys) if key in given}
    roles |= {place: "op" for place, key in enumerate(keys) if key in OP_COLUMNS}
    others = [name if place not in roles else "" for place, name in enumerate(names)]
    usual = {keys[place]: role for role, place in recognise(others).items() if role not in roles.values()}
    roles = {place: usual[key] for place, key in enumerate(keys) if key in usual} | roles
    return {place: "at" if role in ("time", "start") else role for place, role in sorted(roles.items())}


def _from_row(row: Any, path: Path, line: int, read: ReadOptions) -> dict[str, Any]:
    if isinstance(row, Mapping):
        names, values = [str(name) for name in row], list(row.values())
        return {role: values[place] for place, role in find_columns(names, read).items()}
    if isinstance(row, Sequence) and not isinstance(row, str) and len(row) <= len(POSITIONS):
        return dict(zip(POSITIONS, row, strict=False))
    raise DataError(path, line, f"expected a mapping or (op, head, rel, tail, at, end) (got {row!r})")


def _read_json_lines(path: Path, text: str, read: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(path, number, f"expected one JSON object per line ({error})") from None
            yield number, _from_row(found, path, number, read)


def _read_csv(path: Path, text: str, read: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    if not text.strip():
        return  # a day without changes
    first = text.split("\n", 1)[0]
    delimiter = max("\t,;|", key=lambda mark: (first.count(mark), mark == "\t"))
    if read.delimiter and read.delimiter in first:
        delimiter = read.delimiter
    rows = read_fields(path, None, delimiter, text)
    line, names = next(rows)
    if names[0].strip().lower() in OP_NAMES and not {"head", "tail"} <= set(find_columns(names, read).values()):
        yield from _named(path, POSITIONS, chain([(line, names)], rows), ReadOptions())  # without a header
    else:
        yield from _named(path, names, rows, read)


def _read_parquet(path: Path, read: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(f"reading '{path}' needs the package pyarrow") from None
    columns = parquet.read_table(path).to_pydict()
    yield from _named(path, list(columns), enumerate(zip(*columns.values(), strict=True), 1), read)


def _named(
    path: Path, names: Sequence[str], rows: Iterable[tuple[int, Sequence[Any]]], read: ReadOptions
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows with the names of their columns. Other columns are left out."""
    columns = find_columns(names, read)
    roles = list(columns.values())
    missing = [role for role in POSITIONS[:4] if role not in roles]
    if missing:
        remedy = "Name them with columns={'head': …}, on the command line --columns head=…"
        problem = f"expected a column {' and '.join(missing)}. {remedy} (got {', '.join(names)})"
        raise DataError(path, None, problem)
    double = sorted({role for role in roles if roles.count(role) > 1})
    if double:
        raise DataError(path, None, f"expected the column {' and '.join(double)} once (got {', '.join(names)})")
    if others := [name for place, name in enumerate(names) if place not in columns]:
        logger.warning("%s: columns that are not read: %s", path, ", ".join(map(repr, others)))
    for line, row in rows:
        if len(row) > len(names):  # rejected, with the others of the file
            yield line, {"op": f"a line of {len(row)} fields", "line": ", ".join(map(str, row))}
        else:
            yield line, {role: row[place] for place, role in columns.items() if place < len(row)}
