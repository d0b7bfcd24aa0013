"""The tables in the files of releases: verified, applied one after the other, and cut to the rows that changed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.live.manifest import DamagedReleaseError, Manifest
from tkg_incremental.live.tensors import NAMES, TensorFileError, file_checksum, read_header, read_tensors

__all__ = ["changed_parts", "read_tables", "verify_files"]


def verify_files(folder: Path, manifest: Manifest, checksums: bool = True) -> None:
    """Checks the files of one release against its manifest.

    Args:
        folder: The folder of the release.
        manifest: Its manifest.
        checksums: Also read every byte. Otherwise only sizes and headers are checked.

    Raises:
        DamagedReleaseError: With the file and what is wrong with it.
    """
    number = manifest.number
    for name, about in manifest.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
            if size != about["bytes"]:
                raise DamagedReleaseError(number, path, f"it should have {about['bytes']} bytes (got {size})")
            if checksums and file_checksum(path) != about["sha256"]:
                raise DamagedReleaseError(number, path, "its checksum is wrong: it was damaged after it was written")
            header = read_header(path)
        except OSError as error:
            raise DamagedReleaseError(number, path, error.strerror or str(error)) from error
        except TensorFileError as error:
            raise DamagedReleaseError(number, path, str(error)) from error
        for table, entry in header.items():
            _check_entry(manifest, path, table, [NAMES[entry.dtype], *entry.shape])


def _check_entry(manifest: Manifest, path: Path, key: str, got: list[Any]) -> None:
    """Whether a tensor of a file has the type and shape that the manifest says."""
    table, _, part = key.rpartition(".")
    if part not in ("index", "rows") or table not in manifest.tables:
        table, part = key, ""
    expected = manifest.tables.get(table)
    if expected is None:
        raise DamagedReleaseError(manifest.number, path, f"it holds '{key}', which the manifest does not list")
    wanted = [expected["dtype"], *expected["shape"]]
    if part == "index":
        wanted = ["I64", got[1] if len(got) == 2 else -1]
    elif part == "rows":
        wanted[1] = got[1] if len(got) > 1 and got[1] <= wanted[1] else wanted[1]
    if wanted != got:
        raise DamagedReleaseError(manifest.number, path, f"'{key}' should be {wanted} (got {got})")


def read_tables(
    chain: Sequence[tuple[Path, Manifest]], checksums: bool = True, rows: Mapping[str, int] | None = None
) -> dict[str, Tensor]:
    """The tables of the last release of a chain: those of the first one, memory-mapped, with the rows that each later
    one has changed. Tables that get more rows are copied, once.

    Args:
        chain: Folders and manifests, a full release first.
        checksums: Read every byte and verify it first.
        rows: Numbers of rows by table, at least those of the release. Rows beyond those are zero.
    """
    sizes, room = chain[-1][1].tables, rows or {}
    tables: dict[str, Tensor] = {}
    for folder, manifest in chain:
        verify_files(folder, manifest, checksums)
    for (_, before), (folder, manifest) in itertools.pairwise(chain):
        _check_growth(before, manifest, folder)
    for folder, manifest in chain:
        parts: dict[str, Tensor] = {}
        for name in manifest.files:
            parts.update(read_tensors(folder / name))
        for table in manifest.tables:
            if table in parts:
                tables[table] = _grown(parts[table], sizes.get(table), room.get(table, 0))
            elif f"{table}.index" in parts:
                _apply(manifest, folder, tables, table, parts)
            elif table not in tables:
                raise DamagedReleaseError(manifest.number, folder, f"the table '{table}' is missing")
    return {table: tables[table] for table in sizes}


def _check_growth(before: Manifest, manifest: Manifest, folder: Path) -> None:
    """Every new row must be in a file: a damaged size cannot ask for memory."""
    held: dict[str, int] = {}
    for name in manifest.files:
        header = read_header(folder / name)
        held.update({key: entry.shape[0] for key, entry in header.items() if entry.shape})
    for table, about in manifest.tables.items():
        old = before.tables.get(table, {"shape": []})["shape"]
        if table not in held and old and about["shape"][0] - old[0] > held.get(f"{table}.rows", 0):
            reason = f"'{table}' should have {about['shape'][0]} rows, which are not there"
            raise DamagedReleaseError(manifest.number, folder, reason)


def _apply(
    manifest: Manifest, folder: Path, tables: dict[str, Tensor], table: str, parts: Mapping[str, Tensor]
) -> None:
    index, rows = parts[f"{table}.index"], parts.get(f"{table}.rows")
    bound, target = manifest.tables[table]["shape"][0], tables.get(table)
    if target is None or rows is None or len(rows) != len(index):
        raise DamagedReleaseError(manifest.number, folder, f"the rows of '{table}' do not fit their index")
    if rows.dtype != target.dtype or rows.shape[1:] != target.shape[1:] or bound > len(target):
        raise DamagedReleaseError(manifest.number, folder, f"the rows of '{table}' do not fit the table")
    if len(index) and not 0 <= int(index.min()) <= int(index.max()) < bound:
        raise DamagedReleaseError(manifest.number, folder, f"the index of '{table}' exceeds its {bound} rows")
    target[index] = rows


def _grown(table: Tensor, final: dict[str, Any] | None, room: int) -> Tensor:
    """The table, in a larger tensor if later releases or the caller add rows; otherwise memory-mapped, as it is."""
    if final is None or table.dim() == 0 or final["shape"][1:] != list(table.shape[1:]):
        return table
    rows = max(final["shape"][0], room)
    if rows <= len(table):
        return table
    grown = torch.empty(rows, *table.shape[1:], dtype=table.dtype)
    grown[: len(table)] = table
    grown[len(table) :] = 0
    return grown


def changed_parts(tables: Mapping[str, Tensor], changed: Mapping[str, Tensor], before: Manifest) -> dict[str, Tensor]:
    """The tensors of a file with the rows that changed: for each table their index and values, or all of a new table.

    Args:
        tables: All tables, whole.
        changed: For each table the rows that changed.
        before: The release that they have changed since.
    """
    unknown = set(changed) - set(tables)
    if unknown:
        raise ValueError(f"changed names tables that are not there: {sorted(unknown)}")
    parts = {}
    for name, table in tables.items():
        old = before.tables.get(name)
        same = old is not None and old["dtype"] == NAMES[table.dtype] and old["shape"][1:] == list(table.shape[1:])
        if old is None or not same or table.dim() == 0 or len(old["shape"]) == 0:
            parts[name] = table
            continue
        if len(table) < old["shape"][0]:
            raise ValueError(f"table '{name}' must not shrink (got {len(table)} rows after {old['shape'][0]})")
        new = torch.arange(old["shape"][0], len(table))
        index = torch.unique(torch.cat([changed.get(name, new[:0]).to("cpu", torch.int64), new]))
        if len(index):
            if not 0 <= int(index[0]) <= int(index[-1]) < len(table):
                raise ValueError(f"changed rows of '{name}' must be in 0..{len(table) - 1} (got {int(index[-1])})")
            parts[f"{name}.index"] = index
            parts[f"{name}.rows"] = table.detach()[index.to(table.device)]
    return parts
