"""Reading delimited text with errors that say where."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path


class DataError(ValueError):
    """Something in a data file is not as it should be.

    Args:
        path: The file.
        line: Number of the line, from 1; :obj:`None` if the file as a whole is meant.
        problem: What was expected and what came.
    """

    def __init__(self, path: str | os.PathLike[str], line: int | None, problem: str) -> None:
        super().__init__(str(path), line, problem)
        self.path, self.line, self.problem = Path(path), line, problem

    def __str__(self) -> str:
        where = f"{self.path}, line {self.line}" if self.line is not None else str(self.path)
        return f"{where}: {self.problem}"


def read_fields(
    path: str | os.PathLike[str], columns: tuple[int, ...] | None = None, delimiter: str = "\t"
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of every line that is not blank.

    Args:
        path: A UTF-8 text file; a byte order mark at its start is passed over.
        columns: How many fields a line may have; :obj:`None` leaves that to the caller.
        delimiter: What separates them. Fields that a comma or semicolon separates may be quoted, as in CSV
            files; a quoted field ends on its line.
    """
    quoted = delimiter != "\t"
    empty = True
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                reason = f"{error.reason} at byte {error.start}"
                raise DataError(path, number, f"expected UTF-8 text ({reason})") from None
            if not line.strip():
                continue
            empty = False
            fields = _unquote(path, number, line, delimiter) if quoted else line.split(delimiter)
            if columns is not None and len(fields) not in columns:
                raise wrong_columns(path, number, columns, fields)
            yield number, fields
    if empty:
        raise DataError(path, None, "expected at least one line (the file is empty)")


def wrong_columns(path: str | os.PathLike[str], line: int, columns: tuple[int, ...], fields: list[str]) -> DataError:
    """The error of a line with too few or too many fields."""
    wanted = " or ".join(map(str, columns))
    came = short(" | ".join(fields))
    return DataError(path, line, f"expected {wanted} columns (got {len(fields)}: {came!r})")


def parse_id(path: str | os.PathLike[str], line: int, text: str, what: str, size: int) -> int:
    """Reads an id below ``size``."""
    if not text.isascii() or not text.isdigit():
        raise DataError(path, line, f"expected {what} as a number (got {short(text)!r})")
    if len(text.lstrip("0")) > 18 or int(text) >= size:
        raise DataError(path, line, f"expected {what} below {size} (got {short(text)})")
    return int(text)


def read_names(path: str | os.PathLike[str]) -> list[str]:
    """Names by id from ``name ⇥ id`` lines, which may carry further columns."""
    names: dict[int, str] = {}
    lines = list(read_fields(path, (2, 3, 4)))
    for number, (name, text, *_) in lines:
        index = parse_id(path, number, text, "an id", len(lines))
        if index in names:
            raise DataError(path, number, f"expected every id once (got {index} again)")
        names[index] = name
    return [names[index] for index in range(len(names))]


def short(text: str, limit: int = 60) -> str:
    """As much of a text as an error message can take."""
    return text if len(text) <= limit else text[:limit] + "…"


def _unquote(path: str | os.PathLike[str], number: int, line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        problem = f"expected quoted fields that end on their line ({error}: {short(line)!r})"
        raise DataError(path, number, problem) from None
