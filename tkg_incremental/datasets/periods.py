"""Reading the dates of a table, once per text that occurs."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from tkg_incremental.data.dates import is_unix, parse_index, parse_period
from tkg_incremental.data.units import Period, convert
from tkg_incremental.datasets.readers import is_missing

if TYPE_CHECKING:
    from tkg_incremental.datasets.table import Table

logger = logging.getLogger(__name__)

# What stands for an end that is open, e.g. "", "-", "?", "####-##-##", "NULL", "\N", "infinity" (dumps of databases).
_NO_DATE = re.compile(r"[-?#\s]*|none|null|nan|nat|n/?a|<na>|\\n", re.IGNORECASE)
_OPEN_END = re.compile(r"present|now|current|ongoing|infinity", re.IGNORECASE)
LAST_YEAR = 9999  # 9999-12-31 is the open end of SQL databases


def read_periods(table: Table, unit: str = "auto", dayfirst: bool = False, date_format: str | None = None) -> None:
    """Reads all dates of a table into its ``starts`` and ``ends``.

    Args:
        table: The table.
        unit: The unit of the axis. ``"index"`` takes integers that are not negative instead of dates.
        dayfirst: Read ``03/04/2024`` as 3 April.
        date_format: See :class:`~tkg_incremental.datasets.options.ReadOptions`.
    """

    def read(written: Any, is_end: bool) -> Period | None:
        text = written.strip() if isinstance(written, str) else "" if is_missing(written) else None
        if text is not None and not text[:1].isdigit() and is_open(text, is_end):
            if table.is_point:
                raise ValueError(f"expected a time (got {repr(text) if text else 'an empty field'})")
            return None
        if unit == "index":
            index = parse_index(written)
            if index < 0:
                raise ValueError(f"expected a step that is not negative (got {index})")
            return Period("index", index)
        period = parse_period(written, dayfirst, date_format, unit)
        # The text is looked at first: converting every end would take as long as reading it.
        may_be_last = is_end and (text is None or str(LAST_YEAR) in text)
        return None if may_be_last and convert(period, "year")[0] == LAST_YEAR else period

    table.starts = table.ends = table.read_each(table.start, dict.fromkeys(table.start), lambda text: read(text, False))
    if not table.is_point:
        table.ends = table.read_each(table.end, dict.fromkeys(table.end), lambda text: read(text, True))
    if date_format is None and unit != "index":
        for written in table.starts:
            if isinstance(written, (str, int)) and is_unix(written):
                logger.warning("%s: dates such as %s are read as Unix seconds", table.path, written)
                break


def is_open(text: str, is_end: bool) -> bool:
    """Whether a text stands for an open start or end."""
    return is_no_date(text) or (bool(_OPEN_END.fullmatch(text)) if is_end else text.lower() == "-infinity")


def is_no_date(text: str) -> bool:
    """Whether a text says that there is no date."""
    return bool(_NO_DATE.fullmatch(text))
