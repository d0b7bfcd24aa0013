"""How the files of a live graph are read: with the options of ``create``, unless an update has its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tkg_incremental.data.dates import parse_instant
from tkg_incremental.data.units import Period, convert, format_instant
from tkg_incremental.datasets.columns import ROLES, recognise
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.periods import LAST_YEAR
from tkg_incremental.live.graph_toml import check_table
from tkg_incremental.live.records import OPEN

_DEFAULTS = {"delimiter": "", "dayfirst": False, "date_format": "", "outliers": "error"}


def to_tables(read: ReadOptions | None) -> dict[str, dict[str, Any]]:
    """The tables ``[read]`` and ``[columns]`` of ``graph.toml``, with what differs from the defaults."""
    read = read or ReadOptions()
    columns = read.columns or {}
    if not isinstance(columns, Mapping):  # the names of all columns, for files without a header
        columns = recognise(columns)
    found = {key: getattr(read, key) for key in _DEFAULTS}
    given = {key: value for key, value in found.items() if value is not None and value != _DEFAULTS[key]}
    return {name: dict(table) for name, table in (("read", given), ("columns", columns)) if table}


def from_tables(settings: Mapping[str, Any]) -> ReadOptions:
    """The options that the tables hold. A :class:`ValueError` names what cannot be used."""
    table = check_table("read", settings.get("read", {}), _DEFAULTS)
    columns = settings.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(name, (str, int)) for name in columns.values()):
        raise ValueError(f"[columns] must be a table of names or positions (got {columns!r})")
    if unknown := [role for role in columns if role not in ROLES]:
        raise ValueError(f"[columns] has no option {unknown[0]!r} (expected one of {', '.join(ROLES)})")
    try:
        return ReadOptions(columns or None, **{key: value for key, value in table.items() if value != ""})
    except ValueError as error:
        raise ValueError(f"[read] cannot be used: {error}") from None


def date_parser(unit: str, read: ReadOptions) -> Callable[[str], int]:
    """Reads the dates of changes: as those of the first file, or in an ISO form. Dates of the year 9999 are
    :data:`OPEN`, as in files of facts."""
    first, last = (OPEN, OPEN) if unit == "index" else convert(Period("year", LAST_YEAR), unit)

    def parse(text: str) -> int:
        try:
            instant = parse_instant(text, unit, read.dayfirst, read.date_format)
        except ValueError:
            if read.date_format is None:
                raise
            instant = parse_instant(text, unit)
        return OPEN if first <= instant <= last else instant

    return parse


def to_iso(when: Any, unit: str, read: ReadOptions) -> Any:
    """A date in the form of the graph's files as an ISO date. Everything else is returned as it is."""
    if not isinstance(when, str) or not (read.dayfirst or read.date_format):
        return when
    try:
        if read.date_format is None:
            parse_instant(when, unit)
            return when
    except ValueError:
        pass
    try:
        return format_instant(parse_instant(when, unit, read.dayfirst, read.date_format), unit)
    except ValueError:
        return when  # in an ISO form, or the caller raises an error
