"""Reads and writes ``graph.toml``: flat tables of scalars."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tkg_incremental.storage import atomic_write


def read_settings(path: Path) -> dict[str, Any]:
    """The tables of a TOML file. A :class:`ValueError` names the line that is no TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read '{path}': {error}") from error


def check_table(name: str, table: Any, options: type[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The values of a table of the file, if each is an option and has the type of its default; otherwise a
    :class:`ValueError` with what was expected and what came. ``options`` are defaults by name, or a dataclass
    with scalar defaults."""
    if not isinstance(table, dict):
        raise ValueError(f"[{name}] must be a table (got {table!r})")
    if isinstance(options, type):
        options = {each.name: each.default for each in fields(options)}
    defaults: dict[str, Any] = {key: value for key, value in options.items() if isinstance(value, (int, float, str))}
    for key, value in table.items():
        if key not in defaults:
            raise ValueError(f"[{name}] has no option {key!r} (expected one of {', '.join(sorted(defaults))})")
        wanted = type(defaults[key])
        accepted = (int, float) if wanted is float else wanted
        if not isinstance(value, accepted) or (isinstance(value, bool) and wanted is not bool):
            raise ValueError(f"{key} in [{name}] must be {_KINDS[wanted]} (got {value!r})")
        if wanted is float and not math.isfinite(value):
            raise ValueError(f"{key} in [{name}] must be finite (got {value})")
    return table


_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


#: Number of releases that stay on disk, unless ``graph.toml`` says another one.
KEEP = 30


def read_keep(table: Any) -> int:
    """The option ``keep`` of the table ``[releases]``: number of releases that stay on disk; 0 keeps all."""
    keep = int(check_table("releases", table, {"keep": KEEP}).get("keep", KEEP))
    # The last but one must stay: a reader may be about to open it.
    if keep != 0 and keep < 2:
        raise ValueError(f"keep in [releases] must be 0 or at least 2 (got {keep})")
    return keep


def write_settings(path: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes tables of scalars as TOML, atomically."""
    lines = []
    for name, table in tables.items():
        lines += [f"[{_key(name)}]", *(f"{_key(key)} = {_value(key, value)}" for key, value in table.items()), ""]
    with atomic_write(path) as file:
        file.write("\n".join(lines).encode())


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key, key)


def _value(key: str, value: Any) -> str:
    if not isinstance(value, (bool, int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"setting '{key}' must be a finite number, a string or a truth value (got {value!r})")
    # JSON's scalars are TOML's, but TOML has DEL escaped and no pairs of surrogates.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
