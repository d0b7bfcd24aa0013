"""Reads changes from CSV, TSV, JSON lines and Parquet files, data frames and sequences."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.lines import DataError, read_fields, read_text
from tkg_incremental.datasets.readers import is_frame, is_missing, source_name
from tkg_incremental.live.records import Change, Rejection

OP_NAMES = {"add": "add", "+": "add", "end": "end", "-": "end", "retract": "retract"}
POSITIONS = ("op", "head", "rel", "tail", "at", "end")
COLUMNS = {name: name for name in POSITIONS}
COLUMNS |= {"subject": "head", "relation": "rel", "predicate": "rel", "object": "tail", "start": "at"}


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


def read_records(source: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines and records of a file, whose ending tells its format, a data frame, or a sequence of mappings or tuples."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        kind = path.suffix.lower()
        if kind in (".parquet", ".pq"):
            yield from _read_parquet(path)
        else:
            text = read_text(path)
            read = _read_json_lines if kind in (".jsonl", ".ndjson", ".json") else _read_csv
            yield from read(path, text)
    elif is_frame(source):
        rows = source.itertuples(index=False, name=None)
        yield from _named(source_name(source), [str(name) for name in source.columns], enumerate(rows, 1))
    elif isinstance(source, Iterable):
        for number, row in enumerate(source, 1):
            yield number, _from_row(row, Path("<changes>"), number)
    else:
        raise TypeError(f"changes must be a path, a data frame or a sequence (got {type(source).__name__})")


def _from_row(row: Any, path: Path, line: int) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return {COLUMNS.get(str(key).strip().lower(), str(key)): value for key, value in row.items()}
    if isinstance(row, Sequence) and not isinstance(row, str) and len(row) <= len(POSITIONS):
        return dict(zip(POSITIONS, row, strict=False))
    raise DataError(path, line, f"expected a mapping or (op, head, rel, tail, at, end) (got {row!r})")


def _read_json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(path, number, f"expected one JSON object per line ({error})") from None
            yield number, _from_row(found, path, number)


def _read_csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    if not text.strip():
        return  # a day without changes
    first = text.split("\n", 1)[0]
    delimiter = max("\t,;", key=lambda mark: (first.count(mark), mark == "\t"))
    rows = read_fields(path, None, delimiter, text)
    line, names = next(rows)
    if names[0].strip().lower() in OP_NAMES and not {"head", "tail"} <= {name.strip().lower() for name in names}:
        yield from _named(path, POSITIONS, chain([(line, names)], rows))  # without a header
    else:
        yield from _named(path, names, rows)


def _read_parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(f"reading '{path}' needs the package pyarrow") from None
    columns = parquet.read_table(path).to_pydict()
    yield from _named(path, list(columns), enumerate(zip(*columns.values(), strict=True), 1))


def _named(
    path: Path, names: Sequence[str], rows: Iterable[tuple[int, Sequence[Any]]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows with the names of their columns. Other columns are left out."""
    columns = [COLUMNS.get(name.strip().lower()) for name in names]
    missing = [column for column in POSITIONS[:4] if column not in columns]
    if missing:
        raise DataError(path, None, f"expected a column {' and '.join(missing)} (got {', '.join(names)})")
    double = sorted({column for column in columns if column is not None and columns.count(column) > 1})
    if double:
        raise DataError(path, None, f"expected the column {' and '.join(double)} once (got {', '.join(names)})")
    for line, row in rows:
        if len(row) > len(columns):  # rejected, with the others of the file
            yield line, {"op": f"a line of {len(row)} fields", "line": ", ".join(map(str, row))}
        else:
            yield line, {name: value for name, value in zip(columns, row, strict=False) if name is not None}
