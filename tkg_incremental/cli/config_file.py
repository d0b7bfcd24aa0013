"""Options of a run from a TOML or YAML file."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tkg_incremental.cli.errors import BadDataError, UsageError
from tkg_incremental.registry import did_you_mean


def read_config(path: Path, known: Sequence[str]) -> list[str]:
    """The options of a file as flags, so that both are checked in the same way.

    Args:
        path: A ``.toml``, ``.yaml`` or ``.yml`` file with a value for each option.
        known: Names of all options.
    """
    flags: list[str] = []
    for key, value in _load(path).items():
        name = str(key).replace("-", "_")
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"'{path}' has an unknown option {key!r}{hint}")
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif isinstance(value, (str, int, float)):
            flags.append(f"{flag}={value}")
        else:
            raise UsageError(f"'{path}': {key} must be a number or a string (got {value!r})")
    return flags


def _load(path: Path) -> dict[str, Any]:
    readers = {".toml": _load_toml, ".yaml": _load_yaml, ".yml": _load_yaml}
    if path.suffix.lower() not in readers:
        raise UsageError(f"--config must be a .toml, .yaml or .yml file (got '{path}')")
    try:
        found = readers[path.suffix.lower()](path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise BadDataError(f"'{path}' is not UTF-8 text: {error}") from None
    except _Syntax as error:
        raise BadDataError(f"'{path}' cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise BadDataError(f"'{path}' must hold options with their values (got {type(found).__name__})")
    return found


class _Syntax(Exception):
    """A file that is not valid TOML or YAML."""


def _load_toml(text: str) -> Any:
    toml = _first_of("tomllib", "tomli")  # Python 3.10 has no tomllib
    if toml is None:
        raise UsageError("TOML files need Python 3.11 or the package tomli: pip install tomli")
    try:
        return toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise _Syntax(str(error)) from None


def _load_yaml(text: str) -> Any:
    yaml = _first_of("yaml")
    if yaml is None:
        raise UsageError("YAML files need the package pyyaml: pip install 'tkg-incremental[yaml]'; or use a TOML file")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _Syntax(" ".join(str(error).split())) from None


def _first_of(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
