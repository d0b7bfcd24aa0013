"""Readers of tables: delimited text, JSON lines, Parquet files and pandas data frames."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.columns import is_complete, recognise
from tkg_incremental.datasets.lines import DataError, read_fields, read_text, records_of, short

# A file, or a pandas DataFrame: `Any`, so that pandas need not be there for its type.
Source = Any
#: The names of the columns, :obj:`None` if the first row may be a header; the cells of each row; and the line of each
#: row, :obj:`None` if rows are counted instead.
Records = tuple[list[str] | None, Sequence[Sequence[Any]], Sequence[int] | None]

DELIMITERS = ("\t", ";", "|", ",")

_SNIFFED_LINES = 20
# Half of a character: JSON can write it, and UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_records(source: Source, delimiter: str | None = None) -> Records:
    """Reads a file, by its suffix, or a data frame. Either may be empty.

    Args:
        source: ``*.jsonl``, ``*.ndjson``, ``*.json``: JSON lines; ``*.parquet``, ``*.pq``: Parquet; any other file:
            delimited text. Or a pandas data frame.
        delimiter: What separates the fields of delimited text; sniffed by default.
    """
    path = source_name(source)
    if is_frame(source):
        return list(map(str, source.columns)), list(source.itertuples(index=False, name=None)), None
    reader = _BY_SUFFIX.get(path.suffix.lower())
    return reader(path) if reader else read_delimited(path, delimiter)


def read_delimited(path: Path, delimiter: str | None = None) -> Records:
    """Reads delimited text.

    Args:
        path: A UTF-8 text file.
        delimiter: What separates the fields; sniffed by default.
    """
    text = read_text(path)
    rows: list[list[str]] = []
    lines: list[int] = []
    if not text.strip():
        return None, rows, lines
    for line, fields in read_fields(path, None, delimiter or sniff(path, text), text):
        rows.append(fields)
        lines.append(line)
    return None, rows, lines


def names_facts(fields: Sequence[str]) -> bool:
    """Whether a record is a header that names the columns of facts."""
    return is_complete(recognise(fields))


def sniff(path: Path, text: str, is_first: Callable[[Sequence[str]], bool] = names_facts) -> str:
    """The delimiter under which the first lines look most like a table.

    Best is one that makes a first record of which ``is_first`` is true, then one that makes at least four columns, then
    the one under which most lines have as many columns as the first. Ties go to the usual one of the file's suffix.
    """
    first = islice(io.StringIO(text[:100_000], newline=""), _SNIFFED_LINES)
    lines = [line for line in first if line.strip()]
    usual = "," if path.suffix.lower() == ".csv" else "\t"

    def fit(delimiter: str) -> tuple[bool, bool, int, int, bool]:
        try:
            records = list(records_of(lines, delimiter, strict=False))
        except csv.Error:
            return False, False, 0, 0, False
        width = len(records[0])
        alike = sum(len(record) == width for record in records)
        return is_first(records[0]), width >= 4, alike, width, delimiter == usual

    return max(DELIMITERS, key=fit) if lines else usual


def read_json_lines(path: Path) -> Records:
    """Reads one JSON object per line; keys are the names of the columns, and a missing key is an empty field."""
    objects: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(path, number, f"expected one JSON object per line ({error})") from None
        if not isinstance(found, dict):
            raise DataError(path, number, f"expected one JSON object per line (got {short(line.strip())!r})")
        for key, value in found.items():
            if isinstance(value, (list, dict)):
                raise DataError(path, number, f"expected text or a number for {key!r} (got {short(str(value))!r})")
            if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
                raise DataError(path, number, f"expected Unicode text for {key!r} (got {short(ascii(value))})")
        objects.append(found)
        lines.append(number)
    header = list(dict.fromkeys(key for found in objects for key in found))
    return header, [[found.get(key) for key in header] for found in objects], lines


def read_parquet(path: Path) -> Records:
    """Reads all columns of a Parquet file, through pyarrow."""
    try:
        import pyarrow.parquet  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(
            f"'{path}' is a Parquet file, which needs pyarrow: pip install 'tkg-incremental[parquet]'"
        ) from None
    try:
        columns = pyarrow.parquet.read_table(path).to_pydict()
    except (ValueError, OSError) as error:  # pyarrow's errors derive from these
        raise DataError(path, None, f"expected a Parquet file ({error})") from None
    return list(columns), list(zip(*columns.values(), strict=True)), None


_BY_SUFFIX = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}
_FRAME = Path("<DataFrame>")


def is_delimited(source: Source) -> bool:
    """Whether a source is read as delimited text."""
    return not is_frame(source) and source_name(source).suffix.lower() not in _BY_SUFFIX


def is_frame(source: Any) -> bool:
    """Whether a source is a pandas DataFrame, or has its methods."""
    return hasattr(source, "itertuples") and hasattr(source, "columns")


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def cell_text(cell: Any) -> str:
    """The text of a cell; empty if it is missing."""
    if isinstance(cell, str):
        return cell.strip()
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():  # a column of integers with gaps is one of floats
        return str(int(cell))
    return str(cell).strip()


def source_name(source: Source) -> Path:
    """What errors call a source."""
    return _FRAME if is_frame(source) else Path(source).expanduser()
