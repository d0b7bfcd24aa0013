"""Reads changes from CSV, TSV, JSON lines and Parquet files, data frames and sequences."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tkg_incremental.live.records import Change

__all__ = ["ChangeFileError", "Rejection", "parse_record", "read_records"]

OP_NAMES = {"add": "add", "+": "add", "end": "end", "-": "end", "retract": "retract"}
COLUMNS = {
    "op": "op",
    "head": "head",
    "subject": "head",
    "rel": "rel",
    "relation": "rel",
    "predicate": "rel",
    "tail": "tail",
    "object": "tail",
    "at": "at",
    "start": "at",
    "end": "end",
}
POSITIONS = ("op", "head", "rel", "tail", "at", "end")


class ChangeFileError(ValueError):
    """A file of changes cannot be read at all."""


class Rejection(NamedTuple):
    """A line that is not applied."""

    line: int
    text: str
    reason: str


def parse_record(
    record: Mapping[str, Any], line: int, parse: Callable[[str], int], at: int | None
) -> Change | Rejection:
    """Makes a change of a record.

    Args:
        record: Values by column: ``op``, ``head``, ``rel``, ``tail``, ``at`` (or ``start``), and for an addition
            ``end``, the last instant at which the fact holds.
        line: Where it comes from.
        parse: Makes an instant of a text.
        at: The instant of additions and ends without one.
    """
    values = {column: _text(value) for column, value in record.items()}
    text = ", ".join(value for value in values.values() if value)
    op = OP_NAMES.get(values.get("op", "").lower())
    if op is None:
        return Rejection(line, text, f"op must be one of add, end, retract, + and - (got {values.get('op', '')!r})")
    missing = [column for column in ("head", "rel", "tail") if not values.get(column)]
    if missing:
        return Rejection(line, text, f"{' and '.join(missing)} missing")
    instants: dict[str, int | None] = {"at": None, "end": None}
    for column in instants:
        if values.get(column):
            try:
                instants[column] = int(parse(values[column]))
            except (ValueError, OverflowError) as error:
                return Rejection(line, text, f"{column} {values[column]!r} is no time ({error})")
    begin, last = instants["at"], instants["end"]
    if last is not None and op != "add":
        return Rejection(line, text, f"only an addition has an end column (got op {op!r}; its time belongs in at)")
    if begin is None and op != "retract":
        begin = at
        if begin is None:
            return Rejection(line, text, "it has no time, and none was given for the file")
    if not all(number is None or -(2**62) < number < 2**62 for number in (begin, last)):
        return Rejection(line, text, "its time is out of range")
    until = None if last is None else last + 1
    if until is not None and begin is not None and until <= begin:
        return Rejection(line, text, "the end is before its beginning")
    return Change(op, values["head"], values["rel"], values["tail"], begin, until, line)


def _text(value: Any) -> str:
    if value is None or value != value:  # NaN and NaT differ from themselves
        return ""
    return str(value).strip()


def read_records(source: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines and records of a file, a data frame or a sequence of mappings or tuples.

    Args:
        source: The path of a file, by whose ending its format is known, or the data.

    Raises:
        ChangeFileError: If it cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        yield from _read_file(Path(source))
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        columns = _columns([str(column) for column in source.columns], "the data frame")
        for number, row in enumerate(source.itertuples(index=False, name=None), 1):
            yield number, _named(columns, row)
    elif isinstance(source, Iterable):
        for number, row in enumerate(source, 1):
            yield number, _from_row(row)
    else:
        raise ChangeFileError(f"changes must be a path, a data frame or a sequence (got {type(source).__name__})")


def _from_row(row: Any) -> dict[str, Any]:
    if isinstance(row, Change):
        raise ChangeFileError("changes that are parsed already go to ChangeSet(changes)")
    if isinstance(row, Mapping):
        return {COLUMNS.get(str(key).strip().lower(), str(key)): value for key, value in row.items()}
    if isinstance(row, Sequence) and not isinstance(row, str) and len(row) <= len(POSITIONS):
        return dict(zip(POSITIONS, row, strict=False))
    raise ChangeFileError(f"a change must be a mapping or (op, head, rel, tail, at, end) (got {row!r})")


def _read_file(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    ending = path.suffix.lower()
    try:
        if ending in (".parquet", ".pq"):
            yield from _read_parquet(path)
            return
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ChangeFileError(f"'{path}' is not in UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise ChangeFileError(f"cannot read '{path}': {error.strerror or error}") from error
    if ending in (".jsonl", ".ndjson", ".json"):
        yield from _read_json_lines(path, text)
    else:
        yield from _read_csv(path, text)


def _read_json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, _from_row(json.loads(line))
            except (json.JSONDecodeError, RecursionError) as error:
                raise ChangeFileError(f"'{path}', line {number}: no JSON ({error})") from error


def _read_csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    first = text.split("\n", 1)[0]
    delimiter = max("\t,;", key=lambda mark: (first.count(mark), mark == "\t"))
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: list[str | None] | None = None
    line = 1
    try:
        for row in rows:
            start, line = line, rows.line_num + 1
            if not any(field.strip() for field in row):
                continue
            if columns is None:
                named = {field.strip().lower() for field in row}
                columns = list(POSITIONS)
                if row[0].strip().lower() not in OP_NAMES or {"head", "tail"} <= named:
                    columns = _columns(row, f"'{path}'")
                    continue
            if len(row) > len(columns):
                yield start, {"op": f"a line of {len(row)} fields", "line": delimiter.join(row)}
            else:
                yield start, _named(columns, row)
    except csv.Error as error:
        raise ChangeFileError(f"'{path}', line {line}: {error}") from error


def _columns(names: Sequence[str], where: str) -> list[str | None]:
    columns = [COLUMNS.get(name.strip().lower()) for name in names]
    missing = [column for column in POSITIONS[:4] if column not in columns]
    if missing:
        raise ChangeFileError(f"{where} has no column {' or '.join(missing)} (got {', '.join(names)})")
    double = {column for column in columns if column is not None and columns.count(column) > 1}
    if double:
        raise ChangeFileError(f"{where} has the column {' and '.join(sorted(double))} twice (got {', '.join(names)})")
    return columns


def _named(columns: Sequence[str | None], row: Sequence[Any]) -> dict[str, Any]:
    return {column: value for column, value in zip(columns, row, strict=False) if column is not None}


def _read_parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ChangeFileError(f"reading '{path}' needs the package pyarrow") from None
    table = parquet.read_table(path)
    columns = _columns(table.column_names, f"'{path}'")
    for number, row in enumerate(table.to_pylist(), 1):
        yield number, _named(columns, list(row.values()))
