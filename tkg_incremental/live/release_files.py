"""The tables in the files of releases: verified, applied one after the other, and cut to the rows that changed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from tkg_incremental.live.manifest import Release
from tkg_incremental.live.tensors import NAMES, file_checksum, read_tensors
from tkg_incremental.storage import CorruptFileError

Parts = dict[str, Tensor]


def describe_table(table: Tensor) -> dict[str, object]:
    """Type and shape of a table, as the manifest has them."""
    return {"dtype": NAMES[table.dtype], "shape": list(table.shape)}


def read_parts(folder: Path, release: Release) -> Parts:
    """The tensors in the files of one release, memory-mapped, after every byte was checked against its manifest."""
    parts: Parts = {}
    for name, about in release.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
            if size != about["bytes"]:
                raise ValueError(f"it should have {about['bytes']} bytes (got {size})")
            if file_checksum(path) != about["sha256"]:
                raise ValueError("its checksum is wrong: it was damaged after it was written")
            for key, tensor in read_tensors(path).items():
                _check_part(release, key, tensor)
                parts[key] = tensor
        except (OSError, ValueError) as error:
            raise CorruptFileError(path, getattr(error, "strerror", None) or str(error)) from error
    return parts


def _check_part(release: Release, key: str, part: Tensor) -> None:
    """Whether a tensor of a file has the type and shape that the manifest says."""
    table, _, kind = key.rpartition(".")
    if kind not in ("index", "rows") or table not in release.tables:
        table, kind = key, ""
    if table not in release.tables:
        raise ValueError(f"it holds '{key}', which the manifest does not list")
    wanted, got = dict(release.tables[table]), describe_table(part)
    if kind == "index":
        wanted = {"dtype": "I64", "shape": [len(part) if part.dim() == 1 else -1]}
    elif kind == "rows" and part.dim() and wanted["shape"] and len(part) <= wanted["shape"][0]:
        wanted["shape"] = [len(part), *wanted["shape"][1:]]
    if wanted != got:
        raise ValueError(f"'{key}' should be {wanted} (got {got})")


def read_tables(chain: Sequence[tuple[Path, Release]], rows: Mapping[str, int] | None = None) -> dict[str, Tensor]:
    """The tables of the last release of a chain: those of the first one, memory-mapped, with the rows that each later
    one has changed. Tables that get more rows, there or by ``rows``, are copied once; those beyond the release are
    zero."""
    last, room = chain[-1][1], rows or {}
    found = [(folder, release, read_parts(folder, release)) for folder, release in chain]
    for (_, before, _), (folder, release, parts) in itertools.pairwise(found):
        _check_growth(before, release, folder, parts)
    tables: dict[str, Tensor] = {}
    for folder, release, parts in found:
        for table, about in release.tables.items():
            if table in parts:
                tables[table] = _grown(parts[table], last.tables.get(table, {"shape": []})["shape"], room.get(table, 0))
            elif f"{table}.index" in parts:
                if not _apply(tables.get(table), parts, table, sum(about["shape"][:1])):
                    raise CorruptFileError(folder, f"the changed rows of '{table}' do not fit it")
            elif table not in tables:
                raise CorruptFileError(folder, f"the table '{table}' is missing")
    return {table: tables[table] for table in last.tables}


def _check_growth(before: Release, release: Release, folder: Path, parts: Parts) -> None:
    """Every new row must be in a file: a damaged size cannot ask for memory."""
    for table, about in release.tables.items():
        old = before.tables.get(table, {"shape": []})["shape"]
        held = sum(parts[f"{table}.rows"].shape[:1]) if f"{table}.rows" in parts else 0
        if table not in parts and old and sum(about["shape"][:1]) - old[0] > held:
            reason = f"'{table}' should have {about['shape'][0]} rows, which are not there"
            raise CorruptFileError(folder, reason)


def _apply(target: Tensor | None, parts: Parts, table: str, bound: int) -> bool:
    """Sets the changed rows of a table, if they fit it and are among its first ``bound`` ones."""
    index, rows = parts[f"{table}.index"], parts.get(f"{table}.rows")
    if target is None or rows is None or rows.dtype != target.dtype or bound > len(target):
        return False
    if rows.shape != (len(index), *target.shape[1:]) or not bool(((index >= 0) & (index < bound)).all()):
        return False
    target[index] = rows
    return True


def _grown(table: Tensor, final: Sequence[int], room: int) -> Tensor:
    """The table, in a larger tensor if later releases or the caller add rows; otherwise memory-mapped, as it is."""
    rows = max([room, *final[:1]])
    if table.dim() == 0 or list(final[1:]) != list(table.shape[1:]) or rows <= len(table):
        return table
    grown = table.new_zeros(rows, *table.shape[1:])
    grown[: len(table)] = table
    return grown


def changed_parts(tables: Mapping[str, Tensor], changed: Mapping[str, Tensor], before: Release) -> Parts:
    """The tensors of a file with the rows that changed since a release: for each table their index and values, or all
    of a new table."""
    unknown = set(changed) - set(tables)
    if unknown:
        raise ValueError(f"changed names tables that are not there: {sorted(unknown)}")
    parts: Parts = {}
    for name, table in tables.items():
        old = before.tables.get(name, {"dtype": "", "shape": []})
        kind = [NAMES[table.dtype], *table.shape[1:]]
        if not old["shape"] or table.dim() == 0 or [old["dtype"], *old["shape"][1:]] != kind:
            parts[name] = table
            continue
        if len(table) < old["shape"][0]:
            raise ValueError(f"table '{name}' must not shrink (got {len(table)} rows after {old['shape'][0]})")
        new = torch.arange(old["shape"][0], len(table))
        index = torch.unique(torch.cat([changed.get(name, new[:0]).to("cpu", torch.int64), new]))
        if len(index):
            if not 0 <= int(index[0]) <= int(index[-1]) < len(table):
                raise ValueError(f"changed rows of '{name}' must be in 0..{len(table) - 1} (got {int(index[-1])})")
            parts |= {f"{name}.index": index, f"{name}.rows": table.detach()[index.to(table.device)]}
    return parts
