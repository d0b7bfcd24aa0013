"""Rows of a table before it is known which column is which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.lines import DataError


@dataclass
class Records:
    """The rows of a file or data frame.

    Args:
        path: The file, for errors.
        header: The names of the columns; :obj:`None` if the first row may be a header.
        rows: The cells of each row.
        lines: The line of each row, for errors.
        place: What ``lines`` counts, ``"line"`` or ``"row"``.
    """

    path: Path
    header: list[str] | None
    rows: Sequence[Sequence[Any]]
    lines: Sequence[int]
    place: str = "line"

    def error(self, row: int | None, problem: str) -> DataError:
        """The error of a row."""
        return DataError(self.path, None if row is None else self.lines[row], problem, self.place)
