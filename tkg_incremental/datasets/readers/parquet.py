"""Parquet files, through pyarrow."""

from __future__ import annotations

from pathlib import Path

from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.readers.records import Records


def read_parquet(path: Path) -> Records:
    """Reads all columns of a Parquet file."""
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
    rows = list(zip(*columns.values(), strict=True))
    if not rows:
        raise DataError(path, None, "expected at least one row (the file is empty)")
    return Records(path, [str(name) for name in columns], rows, range(1, len(rows) + 1), "row")
