"""pandas data frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.readers.records import Records


def read_frame(frame: Any) -> Records:
    """Reads a data frame. Rows are counted from 1, whatever the index of the frame is."""
    path = Path("<DataFrame>")
    rows = list(frame.itertuples(index=False, name=None))
    if not rows:
        raise DataError(path, None, "expected at least one row (the data frame is empty)")
    return Records(path, [str(name) for name in frame.columns], rows, range(1, len(rows) + 1), "row")


def is_frame(source: Any) -> bool:
    """Whether a source is a pandas DataFrame, or has its methods."""
    return hasattr(source, "itertuples") and hasattr(source, "columns")


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)
