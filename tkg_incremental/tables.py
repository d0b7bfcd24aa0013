"""Numbers and tables, as text, HTML and JSON."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

from tkg_incremental.text import printable


def show_number(value: float) -> str:
    """A number as tables have it; whole numbers as they are."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.3g}" if 0 < abs(value) < 0.1 else f"{value:.2f}"


def show_share(value: float | None) -> str:
    """A share in percent; empty if there is none.

    >>> show_share(0.426), show_share(None)
    ('43%', '')
    """
    return "" if value is None else f"{value:.0%}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    """A plain text table.

    Args:
        header: Names of the columns.
        rows: Cells; columns with numbers are aligned to the right.

    >>> print(format_table(["name", "score"], [["Biden", 3.5], ["Trump", 12.25]]))
    name   score
    ─────  ─────
    Biden   3.50
    Trump  12.25
    """
    shown = [[printable(cell) if isinstance(cell, str) else show_number(cell) for cell in row] for row in rows]
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


def html_table(header: Sequence[str], rows: Sequence[Sequence[str | float]], caption: str = "") -> str:
    """The same as HTML, for notebooks.

    Args:
        header: Names of the columns.
        rows: Cells.
        caption: Title of the table.
    """

    def line(cells: Sequence[str | float], kind: str) -> str:
        shown = [printable(cell) if isinstance(cell, str) else show_number(cell) for cell in cells]
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in shown) + "</tr>"

    title = f"<caption>{html.escape(printable(caption))}</caption>" if caption else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<table>{title}<thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def without_nan(value: Any) -> Any:
    """The same for JSON: :obj:`None` in place of numbers that are not finite, in any nesting.

    >>> without_nan({"C@10": float("nan"), "steps": (1, 2.0)})
    {'C@10': None, 'steps': [1, 2.0]}
    """
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _width(text: str) -> int:
    """Columns of a terminal: names may be in any script."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
