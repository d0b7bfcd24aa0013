"""Options of a run from a TOML or YAML file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
    if path.suffix.lower() not in (".toml", ".yaml", ".yml"):
        raise UsageError(f"--config must be a .toml, .yaml or .yml file (got '{path}')")
    parse, wrong = _toml() if path.suffix.lower() == ".toml" else _yaml()
    try:
        found = parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise BadDataError(f"'{path}' is not UTF-8 text: {error}") from None
    except wrong as error:
        raise BadDataError(f"'{path}' cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise BadDataError(f"'{path}' must hold options with their values (got {type(found).__name__})")
    return found


def _toml() -> tuple[Callable[[str], Any], type[Exception]]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads, tomllib.TOMLDecodeError


def _yaml() -> tuple[Callable[[str], Any], type[Exception]]:
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        problem = "YAML files need the package pyyaml: pip install 'tkg-incremental[yaml]'; or use a TOML file"
        raise UsageError(problem) from None
    return yaml.safe_load, yaml.YAMLError
