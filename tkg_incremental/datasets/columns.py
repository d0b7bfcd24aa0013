"""Which column of a table is which."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tkg_incremental.datasets.lines import DataError, short, wrong_columns

logger = logging.getLogger(__name__)

POINT = ("head", "rel", "tail", "time")
INTERVAL = ("head", "rel", "tail", "start", "end")
ROLES = ("head", "rel", "tail", "time", "start", "end")

# Names of columns in lower case, without spaces and punctuation. Names with two roles take the first one that is free.
_NAMES = {
    "head": "head subject subj s h source src headentity subjectid headid from",
    "rel": "rel relation relationship relationtype predicate pred property p r edge type relationid",
    "tail": "tail object obj o t target dst destination tailentity objectid tailid to",
    "time": "time date datetime timestamp at when year month week quarter day hour step t",
    "start": "start begin since from validfrom startdate starttime startyear begindate fromdate effectivefrom "
    "effectivedate occursince first",
    "end": "end until till to validto validuntil enddate endtime endyear todate effectiveto expires expirydate "
    "occuruntil last",
}
#: Names of the column that says what a change does, as :func:`column_key` writes them.
OP_COLUMNS = {"op", "operation", "change"}
_PUNCTUATION = re.compile(r"[\W_]+")


def find_columns(
    path: Path,
    line: int | None,
    fields: Sequence[str],
    columns: Mapping[str, str | int] | Sequence[str] | None = None,
    surely_header: bool = False,
) -> tuple[dict[str, int], bool]:
    """Finds the columns of a table by its first record: the position of each one that is read, from ``head``, ``rel``,
    ``tail`` and ``time`` or ``start`` and ``end``; and whether the first record is a header.

    Args:
        path: The file, for errors.
        line: Line of the record, for errors.
        fields: The first record: the header, if there is one.
        columns: See :class:`~tkg_incremental.datasets.options.ReadOptions`.
        surely_header: Whether the fields are known to be names of columns, as in data frames.
    """
    usual = recognise(fields)
    is_header = surely_header or is_complete(usual)
    if isinstance(columns, Mapping):
        places = _mapped(path, line, fields, columns, usual)
        has_header = is_complete(usual) or not all(isinstance(name, int) for name in columns.values())
    elif columns is not None:
        places, has_header = recognise(columns), is_header
        if not is_complete(places):
            raise ValueError(f"columns must name all of {POINT} or all of {INTERVAL} (got {list(columns)!r})")
        if len(columns) != len(fields):
            raise wrong_columns(path, line or 1, (len(columns),), list(fields))
    elif is_header or _looks_like_header(fields, usual):
        places, has_header = usual, True
    else:
        known = {len(roles): roles for roles in (POINT, INTERVAL)}
        if len(fields) not in known:
            remedy = "Other names are given with columns={'head': …}, on the command line --columns head=…"
            raise DataError(path, line, f"{_EXPECTED}. {remedy} (got {short(' | '.join(fields))!r})")
        places, has_header = {role: place for place, role in enumerate(known[len(fields)])}, False
    if not is_complete(places):
        raise _incomplete(path, line, fields, places)
    if has_header and columns is None:
        check_twice(path, line, fields, places)
    if has_header and (columns is None or isinstance(columns, Mapping)):
        _check_others(path, line, fields, places)
    # Either the column `time`, or `start` and perhaps `end`.
    if "start" not in places and "end" in places:  # date + until
        places = {**places, "start": places["time"]}
    return {role: place for role, place in places.items() if role != "time" or "start" not in places}, has_header


def recognise(fields: Sequence[str]) -> dict[str, int]:
    """The role of every field whose text is the usual name of a column."""
    keys = [column_key(field) for field in fields]
    places: dict[str, int] = {}
    # A name with one role, and the name of a role itself, come before names with several.
    known = [(place, key, roles) for place, key in enumerate(keys) if (roles := _ROLES_OF.get(key))]
    for place, _, roles in sorted(known, key=lambda found: (found[1] not in ROLES, len(found[2]), found[0])):
        role = next((role for role in roles if role not in places), None)
        if role is not None:
            places[role] = place
    return places


def is_complete(places: Mapping[str, int]) -> bool:
    """Whether the columns make facts with a time."""
    return places.keys() >= {"head", "rel", "tail"} and ("time" in places or "start" in places)


def _mapped(
    path: Path,
    line: int | None,
    fields: Sequence[str],
    columns: Mapping[str, str | int],
    usual: Mapping[str, int],
) -> dict[str, int]:
    """The columns that a mapping names, and for other roles those with usual names."""
    if unknown := [role for role in columns if role not in ROLES]:
        raise ValueError(f"columns must map from {', '.join(ROLES)} (got {', '.join(map(str, unknown))})")
    given: dict[str, int] = {}
    for role, name in columns.items():
        place = name if isinstance(name, int) else find_name(fields, name)
        if place is None or not 0 <= place < len(fields):
            header = short(" | ".join(fields), 200)
            raise DataError(path, line, f"expected a column {name!r} for {role} (got {header!r})")
        given[role] = place
    # What is asked for decides between a point in time and an interval.
    left_out = {"start", "end"} if "time" in given else {"time"} if given.keys() & {"start", "end"} else set()
    found = {role: place for role, place in usual.items() if place not in given.values() and role not in left_out}
    return {**found, **given}


def _looks_like_header(fields: Sequence[str], usual: Mapping[str, int]) -> bool:
    """Facts have dates, and dates have digits; a header has names of columns instead."""
    has_digits = any(sign.isdigit() for field in fields for sign in field)
    return len(usual) >= 2 and not has_digits and any(len(column_key(field)) > 1 for field in fields)


def _check_others(path: Path, line: int | None, fields: Sequence[str], places: Mapping[str, int]) -> None:
    others = [field for place, field in enumerate(fields) if place not in places.values()]
    for field in others:
        if column_key(field) in OP_COLUMNS:
            problem = (
                f"expected facts, but the column {field!r} holds changes: apply them with `tkg-incremental update`"
            )
            raise DataError(path, line, problem)
    if others:
        logger.warning("%s: columns that are not read: %s", path, ", ".join(map(repr, others)))


def check_twice(path: Path, line: int | None, fields: Sequence[str], places: Mapping[str, int]) -> None:
    """Two columns of one name: which one is meant?"""
    keys = [column_key(field) for field in fields]
    for place in places.values():
        if keys.count(keys[place]) > 1:
            header = short(" | ".join(fields), 200)
            raise DataError(path, line, f"expected one column {fields[place].strip()!r} (got {header!r})")


def _incomplete(path: Path, line: int | None, fields: Sequence[str], places: Mapping[str, int]) -> DataError:
    roles = [role for role in ("head", "rel", "tail") if role not in places]
    missing = list(roles)
    if "time" not in places and "start" not in places:
        roles.append("start")
        missing.append("time (or start and end)")
    header = short(" | ".join(fields), 200)
    columns = ", ".join(f"{role!r}: …" for role in roles), ",".join(f"{role}=…" for role in roles)
    remedy = f"Name them with columns={{{columns[0]}}}, on the command line --columns {columns[1]}"
    problem = f"{_EXPECTED}; not found: {', '.join(missing)}. {remedy} (got {header!r})"
    return DataError(path, line, problem)


def find_name(fields: Sequence[str], name: str) -> int | None:
    """Position of the column with a name: written in the same way or, if there is none, up to :func:`column_key`."""
    for form in (str.strip, column_key):
        names = list(map(form, fields))
        if form(name) in names:
            return names.index(form(name))
    return None


def column_key(name: str) -> str:
    """A name in lower case, without spaces and punctuation."""
    return _PUNCTUATION.sub("", name).casefold()


_ROLES_OF: dict[str, list[str]] = {}
for _role, _names in _NAMES.items():
    for _name in _names.split():
        _ROLES_OF.setdefault(_name, []).append(_role)

_EXPECTED = (
    f"expected the {len(POINT)} columns {', '.join(POINT)}, the {len(INTERVAL)} columns {', '.join(INTERVAL)} "
    "or a header that names them"
)
