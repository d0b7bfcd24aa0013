"""Reading delimited text with errors that say where."""

from __future__ import annotations

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
    path: str | os.PathLike[str], columns: tuple[int, ...], delimiter: str = "\t"
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of every line that is not blank.

    Args:
        path: A UTF-8 text file; a byte order mark at its start is passed over.
        columns: How many fields a line may have.
        delimiter: What separates them.
    """
    empty = True
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(path, number, f"expected UTF-8 text ({error.reason} at byte {error.start})") from None
            if not line.strip():
                continue
            empty = False
            fields = line.split(delimiter)
            if len(fields) not in columns:
                wanted = " or ".join(map(str, columns))
                raise DataError(path, number, f"expected {wanted} columns (got {len(fields)}: {_short(line)!r})")
            yield number, fields
    if empty:
        raise DataError(path, None, "expected at least one line (the file is empty)")


def parse_id(path: str | os.PathLike[str], line: int, text: str, what: str, size: int) -> int:
    """Reads an id below ``size``."""
    if not text.isascii() or not text.isdigit():
        raise DataError(path, line, f"expected {what} as a number (got {_short(text)!r})")
    value = int(text)
    if value >= size:
        raise DataError(path, line, f"expected {what} below {size} (got {value})")
    return value


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
