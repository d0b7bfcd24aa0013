"""Readers of tables, one file per format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tkg_incremental.datasets.readers.delimited import read_delimited
from tkg_incremental.datasets.readers.frame import is_frame, is_missing, read_frame
from tkg_incremental.datasets.readers.json_lines import read_json_lines
from tkg_incremental.datasets.readers.parquet import read_parquet
from tkg_incremental.datasets.readers.records import Records

__all__ = ["Records", "Source", "is_delimited", "is_frame", "is_missing", "read_records", "source_name"]

# A file, or a pandas DataFrame: `Any`, so that pandas need not be there for its type.
Source = Any

_BY_SUFFIX = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_lines,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def read_records(source: Source, delimiter: str | None = None) -> Records:
    """Reads a file, by its suffix, or a data frame.

    Args:
        source: ``*.jsonl``, ``*.ndjson``, ``*.json``: JSON lines; ``*.parquet``, ``*.pq``: Parquet; any other file:
            delimited text. Or a pandas data frame.
        delimiter: What separates the fields of delimited text; sniffed by default.
    """
    if is_frame(source):
        return read_frame(source)
    path = source_name(source)
    reader = _BY_SUFFIX.get(path.suffix.lower())
    return reader(path) if reader else read_delimited(path, delimiter)


def is_delimited(source: Source) -> bool:
    """Whether a source is read as delimited text."""
    return not is_frame(source) and source_name(source).suffix.lower() not in _BY_SUFFIX


def source_name(source: Source) -> Path:
    """What errors call a source."""
    return Path("<DataFrame>") if is_frame(source) else Path(source).expanduser()
