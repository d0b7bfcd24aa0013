"""Plain text tables: text to the left, numbers to the right."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from tkg_incremental.training.result import show_number


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    """A table for the terminal.

    Args:
        header: Names of the columns.
        rows: Cells; a column with a number in it is set to the right.

    >>> print(plain_table(["name", "score"], [["Biden", 3.5], ["Trump", 12.25]]))
    name   score
    ─────  ─────
    Biden   3.50
    Trump  12.25
    """
    shown = [[cell if isinstance(cell, str) else show_number(cell) for cell in row] for row in rows]
    table = [list(header), *shown]
    widths = [max(_width(line[i]) for line in table) for i in range(len(header))]
    right = [any(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    lines = [
        "  ".join(
            " " * (width - _width(cell)) + cell if numeric else cell + " " * (width - _width(cell))
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in table
    ]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])


def _width(text: str) -> int:
    """Columns of a terminal: names may be in any script."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
