"""Releases: the tables of the model, as files that are written once and never half."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from tkg_incremental.live.manifest import DamagedReleaseError, Manifest
from tkg_incremental.live.release_files import changed_parts, read_tables, verify_files
from tkg_incremental.live.tensors import NAMES, write_tensors
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
        max_chain: Releases that a chain may have before one is full again; :obj:`None` for any number.
    """

    def __init__(
        self, path: str | os.PathLike[str], compact_share: float = COMPACT_SHARE, max_chain: int | None = None
    ) -> None:
        self.path, self.compact_share, self.max_chain = Path(path), compact_share, max_chain

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

    def chain(self, number: int, until: Collection[int] = ()) -> list[Manifest]:
        """A release and its ancestors, oldest first.

        Args:
            number: Number of the release.
            until: Releases whose ancestors are left out, so that an update does not read the manifests of all others.
        """
        found = [self.manifest(number)]
        while (parent := found[-1].parent) is not None and found[-1].number not in until:
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
        """Checks the files of one release against its manifest, see :func:`verify_files`."""
        verify_files(self.folder(number), self.manifest(number), checksums)

    def load_release(
        self, number: int, checksums: bool = True, rows: Mapping[str, int] | None = None
    ) -> dict[str, Tensor]:
        """The tables of a release: those of the last full one, memory-mapped, with the changed rows applied. They can
        be written to: changes stay in memory.

        Args:
            number: Number of the release.
            checksums: Read every byte and verify it first.
            rows: Numbers of rows by table, where more are needed than the release has.

        Raises:
            DamagedReleaseError: If a file of the release or of one that it builds on is missing or damaged.
        """
        chain = self._table_chain(number)
        return read_tables([(self.folder(manifest.number), manifest) for manifest in chain], checksums, rows)

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
            delta = changed_parts(tables, changed, before)
            size = before.chain_bytes + sum(part.numel() * part.element_size() for part in delta.values())
            limit = self.compact_share * sum(part.numel() * part.element_size() for part in tables.values())
            if size <= limit and (self.max_chain is None or len(self._table_chain(parent)) < self.max_chain):
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
