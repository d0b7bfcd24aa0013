"""Which releases stay on disk: the newest ones, and those that they build on."""

from __future__ import annotations

import os
import secrets
import shutil
from typing import Any

from tkg_incremental.live.manifest import DamagedReleaseError
from tkg_incremental.live.releases import ReleaseFolder
from tkg_incremental.live.settings import SettingsError, check_table

__all__ = ["KEEP", "prune_releases", "read_keep"]

#: Number of releases that stay on disk, unless ``graph.toml`` says another one.
KEEP = 30


def read_keep(table: Any) -> int:
    """The option ``keep`` of the table ``[releases]`` of ``graph.toml``: number of releases that stay on disk; 0 keeps
    all. Those that one of them builds on stay, too."""
    keep = int({"keep": KEEP, **check_table("releases", table, {"keep": KEEP})}["keep"])
    # The last but one must stay: a reader may be about to open it.
    if keep != 0 and keep < 2:
        raise SettingsError(f"keep in [releases] must be 0 or at least 2 (got {keep})")
    return keep


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
    numbers = releases.numbers()
    if keep == 0 or len(numbers) <= keep:
        return []
    try:
        needed = _needed(releases, numbers, keep)
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


def _needed(releases: ReleaseFolder, numbers: list[int], keep: int) -> set[int]:
    """The newest releases, the current one with its nearest ancestors, and all that these build on."""
    kept, number = set(numbers[-keep:]), releases.current()
    for _ in range(keep):  # after a rollback these are not the newest ones
        if number is None or number not in numbers:
            break
        kept.add(number)
        number = releases.manifest(number).parent
    needed: set[int] = set()
    for number in kept:
        for release in releases.lineage(number):
            if release.number in needed:
                break
            needed.add(release.number)
            if release.full:
                break
    return needed
