"""Facts with a time or an interval, from a delimited file or a data frame."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tkg_incremental.data import TimeAxis, parse_instant
from tkg_incremental.datasets.lines import DataError, read_fields, short, wrong_columns

# A file, or a pandas DataFrame: `Any`, so that pandas need not be there for its type.
Source = Any

POINT = ("head", "rel", "tail", "time")
INTERVAL = ("head", "rel", "tail", "start", "end")

# Other names of the columns in a header.
SYNONYMS = {
    "subject": "head",
    "relation": "rel",
    "predicate": "rel",
    "object": "tail",
    "date": "time",
    "year": "time",
    "timestamp": "time",
    "from": "start",
    "since": "start",
    "to": "end",
    "until": "end",
}

# What stands for an end that is open, e.g. "", "-", "?", "####-##-##".
_OPEN = re.compile(r"[-?#\s]*|none|null|nan|nat", re.IGNORECASE)


class Fact(NamedTuple):
    """A line: names or ids as they are written, instants as integers, :obj:`None` where an end is open."""

    line: int
    head: str
    rel: str
    tail: str
    start: int | None
    end: int | None


def read_table(
    source: Source, unit: str, columns: Sequence[str] | None = None, delimiter: str | None = None
) -> list[Fact]:
    """Reads facts ``head, rel, tail, time`` or ``head, rel, tail, start, end``.

    Args:
        source: A UTF-8 text file, or a pandas DataFrame.
        unit: What an instant counts: ``"year"``, ``"day"`` or ``"index"``.
        columns: The name of every column, for files without a header or with other names; columns of other
            names are passed over. By default the first line says it, if all names that are needed stand there
            (then in any order), and else there must be 4 or 5 columns.
        delimiter: What separates the fields; by default a comma in files called ``*.csv``, else a tab.
    """
    path = source_name(source)
    lines = _cells(source, delimiter)
    number, fields = next(lines)
    places, is_header = _layout(path, number, fields, columns)
    facts = [] if is_header else [_fact(path, number, fields, places, unit)]
    width = len(fields)
    for number, fields in lines:
        if len(fields) != width:
            raise wrong_columns(path, number, (width,), fields)
        facts.append(_fact(path, number, fields, places, unit))
    if not facts:
        raise DataError(path, None, "expected at least one fact below the header")
    return facts


def steps_of(path: Path, fact: Fact, axis: TimeAxis) -> tuple[int, int]:
    """First and last step of a fact, as far as the axis reaches."""
    first, last = axis.first[0], axis.last[-1]
    start = first if fact.start is None else max(fact.start, first)
    end = last if fact.end is None else min(fact.end, last)
    if start > end:
        reach = f"{axis.labels[0]} … {axis.labels[-1]}"
        raise DataError(path, fact.line, f"expected a time in {reach} (the fact lies outside)")
    return bisect_right(axis.first, start) - 1, bisect_right(axis.first, end) - 1


def source_name(source: Source) -> Path:
    """What errors call a source."""
    return Path("<DataFrame>") if is_frame(source) else Path(source).expanduser()


def is_frame(source: Source) -> bool:
    """Whether a source is a pandas DataFrame (or looks like one)."""
    return hasattr(source, "itertuples") and hasattr(source, "columns")


def _cells(source: Source, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    if not is_frame(source):
        path = source_name(source)
        yield from read_fields(path, None, delimiter or ("," if path.suffix.lower() == ".csv" else "\t"))
        return
    # The frame's header counts as line 0, so that the first row is line 1.
    yield 0, [str(name) for name in source.columns]
    for number, row in enumerate(source.itertuples(index=False, name=None), start=1):
        yield number, [_cell(value) for value in row]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():  # a column of integers with gaps is one of floats
        return str(int(value))
    # A pandas Timestamp would show its hours, too; NaT has a `date`, but no day.
    if hasattr(value, "date") and str(value) != "NaT":
        return value.date().isoformat()
    return str(value)


def _layout(path: Path, line: int, fields: list[str], columns: Sequence[str] | None) -> tuple[dict[str, int], bool]:
    """The place of every column, and whether the line is a header."""
    header = _places(fields)
    if columns is not None:
        places = _places(columns)
        if not _complete(places):
            raise ValueError(f"columns must name all of {POINT} or all of {INTERVAL} (got {columns!r})")
        if len(columns) != len(fields):
            raise wrong_columns(path, line, (len(columns),), fields)
        return places, _complete(header)
    if _complete(header):
        return header, True
    for names in (POINT, INTERVAL):
        if len(fields) == len(names) and line > 0:
            return _places(names), False
    raise DataError(
        path,
        line,
        f"expected the {len(POINT)} columns {', '.join(POINT)}, the {len(INTERVAL)} columns "
        f"{', '.join(INTERVAL)} or a header that names them (got {short(' | '.join(fields))!r})",
    )


def _places(names: Sequence[str]) -> dict[str, int]:
    folded = [name.strip().casefold() for name in names]
    return {SYNONYMS.get(name, name): place for place, name in reversed(list(enumerate(folded)))}


def _complete(places: dict[str, int]) -> bool:
    return places.keys() >= set(POINT) or places.keys() >= set(INTERVAL)


def _fact(path: Path, line: int, fields: list[str], places: dict[str, int], unit: str) -> Fact:
    head, rel, tail = (fields[places[name]].strip() for name in POINT[:3])
    for name, text in zip(POINT, (head, rel, tail), strict=False):
        if not text:
            raise DataError(path, line, f"expected a {name} (got an empty field)")
    if "time" in places:
        time = _instant(path, line, fields[places["time"]], unit)
        return Fact(line, head, rel, tail, time, time)
    start, end = (
        None if _OPEN.fullmatch(fields[places[name]]) else _instant(path, line, fields[places[name]], unit)
        for name in INTERVAL[3:]
    )
    if start is not None and end is not None and start > end:
        between = " … ".join(fields[places[name]].strip() for name in INTERVAL[3:])
        raise DataError(path, line, f"expected a start that is not after the end (got {between})")
    return Fact(line, head, rel, tail, start, end)


def _instant(path: Path, line: int, text: str, unit: str) -> int:
    try:
        instant = parse_instant(text, unit)
    except ValueError as error:
        raise DataError(path, line, str(error)) from None
    if unit == "index" and instant < 0:
        raise DataError(path, line, f"expected a step that is not negative (got {instant})")
    return instant
