"""Which releases stay on disk: the newest ones, and those that they build on."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from typing import Any

from tkg_incremental.live.manifest import DamagedReleaseError
from tkg_incremental.live.releases import ReleaseFolder
from tkg_incremental.live.settings import SettingsError, check_table

__all__ = ["ReleaseSettings", "prune_releases"]


@dataclass(frozen=True)
class ReleaseSettings:
    """The table ``[releases]`` of ``graph.toml``.

    Args:
        keep: Number of releases that stay on disk; 0 keeps all. Those that one of them builds on stay, too.
    """

    keep: int = 30

    def __post_init__(self) -> None:
        # The last but one must stay: a reader may be about to open it.
        if self.keep != 0 and self.keep < 2:
            raise SettingsError(f"keep in [releases] must be 0 or at least 2 (got {self.keep})")

    @classmethod
    def from_table(cls, table: Any) -> ReleaseSettings:
        return cls(**check_table("releases", table, cls))


def prune_releases(releases: ReleaseFolder, keep: int) -> list[int]:
    """Removes all but the newest releases, the current one with the ones before it, and those that they build on.

    A release disappears by a rename, newest first, so that at any moment each one that is left has all it builds on.
    A killed process may leave a renamed folder, which the next writer removes.

    Args:
        releases: The releases. The caller has the writer lock.
        keep: Number of releases to keep; 0 keeps all.

    Returns:
        Numbers of the removed releases.
    """
    numbers, current = releases.numbers(), releases.current()
    if keep == 0 or len(numbers) <= keep:
        return []
    try:
        needed = _needed(releases, {*numbers[-keep:], *_lineage(releases, current, keep)})
    except DamagedReleaseError:
        return []  # what it builds on is unknown, so nothing is removed
    removed = []
    for number in reversed([number for number in numbers if number not in needed]):
        place = releases.folder(number)
        garbage = place.with_name(f"{place.name}.{secrets.token_hex(4)}.tmp")
        try:
            os.rename(place, garbage)
        except PermissionError:
            break  # Windows: a reader has it open; older ones may be what it builds on
        shutil.rmtree(garbage, ignore_errors=True)
        removed.append(number)
    return removed


def _lineage(releases: ReleaseFolder, current: int | None, keep: int) -> list[int]:
    """The current release and its nearest ancestors: after a rollback these are not the newest ones."""
    found: list[int] = []
    while current is not None and len(found) < keep and releases.folder(current).exists():
        found.append(current)
        current = releases.manifest(current).parent
    return found


def _needed(releases: ReleaseFolder, kept: set[int]) -> set[int]:
    """Releases and those that they build on, back to one with whole tables."""
    needed: set[int] = set()
    for number in kept:
        while number not in needed:
            needed.add(number)
            manifest = releases.manifest(number)
            if not manifest.full and manifest.parent is not None:
                number = manifest.parent
    return needed
