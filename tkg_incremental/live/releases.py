"""Releases: the tables of the model, as files that are written once and never half."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.live.manifest import DamagedReleaseError, Manifest
from tkg_incremental.live.tensors import (
    NAMES,
    TensorFileError,
    file_checksum,
    read_header,
    read_tensors,
    write_tensors,
)
from tkg_incremental.storage import atomic_write

__all__ = ["ReleaseFolder", "sync_folder"]

#: Once the changed rows of a chain exceed this share of the tables, the next release is a full one.
COMPACT_SHARE = 0.5


def sync_folder(path: Path) -> None:
    """Flushes the names in a folder to disk."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ReleaseFolder:
    """The releases of a graph and the pointer to the current one.

    Args:
        path: The folder of the graph. It holds ``releases/`` and ``current``.
        compact_share: Share of the tables that the changed rows of a chain may have before a release is full again.
    """

    def __init__(self, path: str | os.PathLike[str], compact_share: float = COMPACT_SHARE) -> None:
        self.path, self.compact_share = Path(path), compact_share

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, current={self.current()})"

    def folder(self, number: int) -> Path:
        """The folder of a release."""
        return self.path / "releases" / f"{number:04d}"

    def numbers(self) -> list[int]:
        """The releases that are there, oldest first."""
        names = (path.name for path in (self.path / "releases").glob("*") if path.is_dir())
        return sorted(int(name) for name in names if re.fullmatch(r"[0-9]{4,}", name))

    # -- the current release

    def current(self) -> int | None:
        """The release that answers; ``None`` before the first one."""
        path = self.path / "current"
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        if not re.fullmatch(rb"[0-9]{4,18}\n", text):
            raise DamagedReleaseError(-1, path, f"the number of a release is expected (got {text[:40]!r})")
        return int(text)

    def set_current(self, number: int) -> None:
        """Makes a release the current one, atomically. This is the commit point of an update."""
        self.manifest(number)
        with atomic_write(self.path / "current") as file:
            file.write(f"{number:04d}\n".encode())

    # -- reading

    def manifest(self, number: int) -> Manifest:
        """The verified manifest of a release."""
        return Manifest.read(self.folder(number), number)

    def chain(self, number: int) -> list[Manifest]:
        """A release and its ancestors, oldest first."""
        found = [self.manifest(number)]
        while (parent := found[-1].parent) is not None:
            found.append(self.manifest(parent))
        return found[::-1]

    def _table_chain(self, number: int) -> list[Manifest]:
        found = [self.manifest(number)]
        while not found[-1].full:
            parent = found[-1].parent
            if parent is None:
                raise DamagedReleaseError(number, self.folder(number), "it has changed rows, but no parent")
            found.append(self.manifest(parent))
        return found[::-1]

    def verify(self, number: int, checksums: bool = True) -> None:
        """Checks the files of one release against its manifest.

        Args:
            number: Number of the release.
            checksums: Also read every byte. Otherwise only sizes and headers are checked.

        Raises:
            DamagedReleaseError: With the file and what is wrong with it.
        """
        manifest = self.manifest(number)
        for name, about in manifest.files.items():
            path = self.folder(number) / name
            try:
                size = path.stat().st_size
                if size != about["bytes"]:
                    raise DamagedReleaseError(number, path, f"it should have {about['bytes']} bytes (got {size})")
                if checksums and file_checksum(path) != about["sha256"]:
                    raise DamagedReleaseError(
                        number, path, "its checksum is wrong: it was damaged after it was written"
                    )
                header = read_header(path)
            except OSError as error:
                raise DamagedReleaseError(number, path, error.strerror or str(error)) from error
            except TensorFileError as error:
                raise DamagedReleaseError(number, path, str(error)) from error
            for table, entry in header.items():
                self._check_entry(manifest, path, table, NAMES[entry.dtype], entry.shape)

    def _check_entry(self, manifest: Manifest, path: Path, key: str, dtype: str, shape: tuple[int, ...]) -> None:
        table, _, part = key.rpartition(".")
        if part not in ("index", "rows") or table not in manifest.tables:
            table, part = key, ""
        expected = manifest.tables.get(table)
        if expected is None:
            raise DamagedReleaseError(manifest.number, path, f"it holds '{key}', which the manifest does not list")
        wanted = [expected["dtype"], *expected["shape"]]
        got = [dtype, *shape]
        if part == "index":
            wanted = ["I64", got[1] if len(got) == 2 else -1]
        elif part == "rows":
            wanted[1] = got[1] if len(got) > 1 and got[1] <= wanted[1] else wanted[1]
        if wanted != got:
            raise DamagedReleaseError(manifest.number, path, f"'{key}' should be {wanted} (got {got})")

    def load_release(self, number: int, checksums: bool = True) -> dict[str, Tensor]:
        """The tables of a release: those of the last full one, memory-mapped, with the changed rows applied.

        Args:
            number: Number of the release.
            checksums: Read every byte and verify it first.

        Raises:
            DamagedReleaseError: If a file of the release or of one that it builds on is missing or damaged.
        """
        chain = self._table_chain(number)
        sizes = chain[-1].tables
        tables: dict[str, Tensor] = {}
        for manifest in chain:
            self.verify(manifest.number, checksums)
        self._check_growth(chain)
        for manifest in chain:
            parts: dict[str, Tensor] = {}
            for name in manifest.files:
                parts.update(read_tensors(self.folder(manifest.number) / name))
            for table in manifest.tables:
                if table in parts:
                    tables[table] = _grown(parts[table], sizes.get(table))
                elif f"{table}.index" in parts:
                    self._apply(manifest, tables, table, parts)
                elif table not in tables:
                    path = self.folder(manifest.number)
                    raise DamagedReleaseError(manifest.number, path, f"the table '{table}' is missing")
        return {table: tables[table] for table in sizes}

    def _check_growth(self, chain: Sequence[Manifest]) -> None:
        """Every new row must be in a file: a damaged size cannot ask for memory."""
        for before, manifest in itertools.pairwise(chain):
            held: dict[str, int] = {}
            for name in manifest.files:
                header = read_header(self.folder(manifest.number) / name)
                held.update({key: entry.shape[0] for key, entry in header.items() if entry.shape})
            for table, about in manifest.tables.items():
                old = before.tables.get(table, {"shape": []})["shape"]
                if table not in held and old and about["shape"][0] - old[0] > held.get(f"{table}.rows", 0):
                    reason = f"'{table}' should have {about['shape'][0]} rows, which are not there"
                    raise DamagedReleaseError(manifest.number, self.folder(manifest.number), reason)

    def _apply(self, manifest: Manifest, tables: dict[str, Tensor], table: str, parts: dict[str, Tensor]) -> None:
        index, rows = parts[f"{table}.index"], parts.get(f"{table}.rows")
        bound = manifest.tables[table]["shape"][0]
        path, target = self.folder(manifest.number), tables.get(table)
        if target is None or rows is None or len(rows) != len(index):
            raise DamagedReleaseError(manifest.number, path, f"the rows of '{table}' do not fit their index")
        if rows.dtype != target.dtype or rows.shape[1:] != target.shape[1:] or bound > len(target):
            raise DamagedReleaseError(manifest.number, path, f"the rows of '{table}' do not fit the table")
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < bound:
            raise DamagedReleaseError(manifest.number, path, f"the index of '{table}' exceeds its {bound} rows")
        target[index] = rows

    # -- writing

    def next_number(self) -> int:
        """The number of the next release."""
        return max(self.numbers(), default=-1) + 1

    def write_release(
        self,
        number: int,
        tables: Mapping[str, Tensor],
        changed: Mapping[str, Tensor] | None,
        parent: int | None,
        *,
        clock: int,
        updates: Sequence[int] = (),
        metrics: dict[str, Any] | None = None,
        vocabulary: dict[str, int] | None = None,
        calibration: dict[str, Any] | None = None,
    ) -> Manifest:
        """Writes a release under a temporary name, flushes it and renames it. It is not current yet.

        Args:
            number: Number of the release; must be new.
            tables: All tables, whole.
            changed: For each table the rows that differ from the parent's. New rows are added to it. A table without
                an entry is unchanged. ``None`` writes all tables.
            parent: The release that this one was made from.
            clock: The last step it has learnt.
            updates: Ids of the updates it contains beyond its parent's.
            metrics: Results of the gate.
            vocabulary: Sizes of the vocabulary.
            calibration: Parameters that turn scores into probabilities.
        """
        target = self.folder(number)
        if target.exists():
            raise FileExistsError(f"release {number} exists already")
        manifest = Manifest(
            number,
            parent,
            full=True,
            created=time.time_ns() // 1000,
            clock=clock,
            updates=tuple(updates),
            tables={name: {"dtype": NAMES[table.dtype], "shape": list(table.shape)} for name, table in tables.items()},
            metrics=metrics or {},
            vocabulary=vocabulary or {},
            calibration=calibration or {},
        )
        parts = dict(tables)
        if changed is not None and parent is not None:
            before = self.manifest(parent)
            delta = _changed_rows(tables, changed, before)
            size = before.chain_bytes + sum(part.numel() * part.element_size() for part in delta.values())
            if size <= self.compact_share * sum(part.numel() * part.element_size() for part in tables.values()):
                parts, manifest = delta, replace(manifest, full=False, chain_bytes=size)
        temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.mkdir(parents=True)
            name = f"tables-{secrets.token_hex(4)}.safetensors"
            manifest = replace(manifest, files={name: write_tensors(temporary / name, parts)})
            manifest.write(temporary)
            sync_folder(temporary)
            os.rename(temporary, target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return manifest

    def reject(self, number: int) -> Path:
        """Sets a release that failed the gate aside, for inspection. Only the last one is kept."""
        if number == self.current():
            raise ValueError(f"release {number} is the current one")
        kept = self.path / "releases" / "rejected"
        shutil.rmtree(kept, ignore_errors=True)
        os.rename(self.folder(number), kept)
        return kept

    def clean(self, keep: set[int]) -> list[Path]:
        """Removes what killed writers have left. Only the holder of the writer lock may call this.

        Args:
            keep: Releases that have been current. Others were never committed.
        """
        releases = self.path / "releases"
        halves = [*releases.glob("*.tmp"), *self.path.glob("*.tmp"), *releases.glob("[0-9]*[0-9]/*.tmp")]
        garbage = halves + [self.folder(number) for number in self.numbers() if number not in keep]
        for number in self.numbers():
            if number in keep:
                try:
                    files = self.manifest(number).files
                except DamagedReleaseError:
                    continue  # nothing is known of its files; `verify` reports it
                garbage += [path for path in self.folder(number).glob("tables-*") if path.name not in files]
        for path in garbage:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return garbage


def _grown(table: Tensor, final: dict[str, Any] | None) -> Tensor:
    """The table, in a larger tensor if later releases add rows; otherwise memory-mapped, as it is."""
    if final is None or table.dim() == 0 or final["shape"][1:] != list(table.shape[1:]):
        return table
    if final["shape"][0] <= len(table):
        return table
    grown = torch.zeros(final["shape"], dtype=table.dtype)
    grown[: len(table)] = table
    return grown


def _changed_rows(tables: Mapping[str, Tensor], changed: Mapping[str, Tensor], before: Manifest) -> dict[str, Tensor]:
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
