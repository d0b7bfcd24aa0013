"""Reading delimited text with errors that say where."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class DataError(ValueError):
    """Something in a data file is not as it should be.

    Args:
        path: The file.
        line: Number of the line, from 1; :obj:`None` if the file as a whole is meant.
        problem: What was expected and what came.
        place: What ``line`` counts: ``"line"``, or ``"row"`` in data frames and Parquet files.
    """

    def __init__(self, path: str | os.PathLike[str], line: int | None, problem: str, place: str = "line") -> None:
        super().__init__(str(path), line, problem, place)
        self.path, self.line, self.problem, self.place = Path(path), line, problem, place

    def __str__(self) -> str:
        where = f"{self.path}, {self.place} {self.line}" if self.line is not None else str(self.path)
        return f"{where}: {self.problem}"


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, without the byte order mark."""
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Positions count from after the byte order mark, if there is one.
        data, before = error.object, error.start
        line, start = data.count(b"\n", 0, before) + 1, data.rfind(b"\n", 0, before) + 1
        problem = f"expected UTF-8 text ({error.reason} at byte {before - start})"
        raise DataError(path, line, problem) from None


def read_fields(
    path: str | os.PathLike[str],
    columns: tuple[int, ...] | None = None,
    delimiter: str = "\t",
    text: str | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of every record that is not blank.

    Args:
        path: A UTF-8 text file; a byte order mark at its start is dropped.
        columns: How many fields a record may have; :obj:`None` leaves that to the caller.
        delimiter: What separates them. Fields that are not separated by tabs may be quoted, as in CSV files, and a
            quoted field may span lines; the number is that of the first line of the record.
        text: The text of the file, if it has been read already.
    """
    text = read_text(path) if text is None else text
    reader = records_of(io.StringIO(text, newline=""), delimiter)
    number, empty = 1, True
    try:
        for fields in reader:
            if fields and (fields[0].strip() or any(map(str.strip, fields))):  # not blank
                empty = False
                if columns is not None and len(fields) not in columns:
                    raise wrong_columns(path, number, columns, fields)
                yield number, fields
            number = reader.line_num + 1
    except csv.Error as error:
        problem = f"expected fields that are quoted as in CSV files ({error})"
        raise DataError(path, number, problem) from None
    if empty:
        raise DataError(path, None, "expected at least one line (the file is empty)")


def records_of(lines: Iterable[str], delimiter: str, strict: bool = True) -> Any:
    """A reader of records: fields are quoted as in CSV files, but not at all where tabs separate them."""
    quoting: Any = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    return csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=strict)


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
    """A text cut to the length an error message can take."""
    return text if len(text) <= limit else text[:limit] + "…"
