"""Releases: the tables of the model, as files that are written once and never half."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from tkg_incremental.live.manifest import Release
from tkg_incremental.live.release_files import changed_parts, describe_table, read_parts, read_tables
from tkg_incremental.live.tensors import write_tensors
from tkg_incremental.storage import CorruptFileError, atomic_write, sync_folder

#: Once the changed rows of a chain exceed this share of the tables, the next release is a full one.
COMPACT_SHARE = 0.5


class ReleaseFolder:
    """The releases of a graph and the pointer to the current one.

    Args:
        path: The folder of the graph. It holds ``releases/`` and ``current``.
        keep: Number of releases that stay on disk, and that a chain may have before one is full again; 0 for all.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 0) -> None:
        self.path, self.keep = Path(path), keep

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, current={self.current()})"

    def folder(self, number: int) -> Path:
        """The folder of a release."""
        return self.path / "releases" / f"{number:04d}"

    def numbers(self) -> list[int]:
        """The releases that are there, oldest first."""
        names = (path.name for path in (self.path / "releases").glob("*") if path.is_dir())
        return sorted(int(name) for name in names if re.fullmatch(r"[0-9]{4,}", name))

    def current(self) -> int | None:
        """The release that answers; ``None`` before the first one."""
        path = self.path / "current"
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        if not re.fullmatch(rb"[0-9]{4,18}\n", text):
            raise CorruptFileError(path, f"the number of a release is expected (got {text[:40]!r})")
        return int(text)

    def set_current(self, number: int) -> None:
        """Makes a release the current one, atomically. This is the commit point of an update."""
        self.manifest(number)
        with atomic_write(self.path / "current") as file:
            file.write(f"{number:04d}\n".encode())

    def manifest(self, number: int) -> Release:
        """The verified manifest of a release."""
        return Release.read(self.folder(number), number)

    def lineage(self, number: int | None) -> Iterator[Release]:
        """A release and its ancestors, newest first. Each manifest is read when it is asked for."""
        while number is not None:
            release = self.manifest(number)
            yield release
            number = release.parent

    def chain(self, number: int, until: Collection[int] = ()) -> list[Release]:
        """A release and its ancestors, oldest first. Those of the releases ``until`` are left out, so that an update
        does not read the manifests of all others."""
        found = []
        for release in self.lineage(number):
            found.append(release)
            if release.number in until:
                break
        return found[::-1]

    def table_chain(self, number: int) -> list[Release]:
        """A release and those that it builds on, back to one with whole tables, which is the first of the list."""
        found = []
        for release in self.lineage(number):
            found.append(release)
            if release.full:
                return found[::-1]
        raise CorruptFileError(self.folder(number), "it has changed rows, but no parent")

    def verify(self, number: int) -> None:
        """Checks the files of one release against its manifest, byte for byte."""
        read_parts(self.folder(number), self.manifest(number))

    def load_release(self, number: int, rows: Mapping[str, int] | None = None) -> dict[str, Tensor]:
        """The tables of a release: those of the last full one, memory-mapped, with the changed rows applied. They can
        be written to: changes stay in memory.

        Args:
            number: Number of the release.
            rows: Numbers of rows by table, where more are needed than the release has.
        """
        chain = self.table_chain(number)
        return read_tables([(self.folder(release.number), release) for release in chain], rows)

    def write_release(
        self,
        number: int,
        tables: Mapping[str, Tensor],
        changed: Mapping[str, Tensor] | None,
        parent: int | None,
        **about: Any,
    ) -> Release:
        """Writes a release under a temporary name, flushes it and renames it. It is not current yet.

        Args:
            number: Number of the release; must be new.
            tables: All tables, whole.
            changed: For each table the rows that differ from the parent's. New rows are added to it. A table without
                an entry is unchanged. ``None`` writes all tables.
            parent: The release that this one was made from.
            **about: ``clock``, and if they are known ``updates``, ``metrics``, ``vocabulary`` and ``calibration`` of
                the :class:`Release`.
        """
        target = self.folder(number)
        if target.exists():
            raise FileExistsError(f"release {number} exists already")
        described = {name: describe_table(table) for name, table in tables.items()}
        release = Release(number, parent, created=time.time_ns() // 1000, tables=described, **about)
        parts = dict(tables)
        if changed is not None and parent is not None:
            before = self.manifest(parent)
            delta = changed_parts(tables, changed, before)
            size = before.chain_bytes + sum(part.nbytes for part in delta.values())
            limit = COMPACT_SHARE * sum(part.nbytes for part in tables.values())
            if size <= limit and (self.keep == 0 or len(self.table_chain(parent)) < self.keep):
                parts, release = delta, replace(release, full=False, chain_bytes=size)
        temporary = self._temporary(number)
        try:
            temporary.mkdir(parents=True)
            name = f"tables-{secrets.token_hex(4)}.safetensors"
            release = replace(release, files={name: write_tensors(temporary / name, parts)})
            release.write(temporary)
            sync_folder(temporary)
            os.rename(temporary, target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return release

    def reject(self, number: int) -> Path:
        """Sets a release that failed the gate aside, for inspection. Only the last one is kept."""
        if number == self.current():
            raise ValueError(f"release {number} is the current one")
        kept = self.path / "releases" / "rejected"
        shutil.rmtree(kept, ignore_errors=True)
        os.rename(self.folder(number), kept)
        return kept

    def prune(self) -> None:
        """Removes all but the newest releases, the current one with the ones before it, and those that they build on.
        Only the holder of the writer lock may call this.

        A release disappears by a rename, newest first, so that at any moment each one that is left has all it builds
        on. A killed process may leave a renamed folder, which the next writer removes.
        """
        numbers = self.numbers()
        if self.keep == 0 or len(numbers) <= self.keep:
            return
        try:
            needed = self._needed(numbers)
        except CorruptFileError:
            return  # what it builds on is unknown, so nothing is removed
        for number in reversed([number for number in numbers if number not in needed]):
            garbage = self._temporary(number)
            try:
                os.rename(self.folder(number), garbage)
            except PermissionError:
                break  # Windows: a reader has it open; older ones may be what it builds on
            shutil.rmtree(garbage, ignore_errors=True)

    def _needed(self, numbers: Sequence[int]) -> set[int]:
        kept, number = set(numbers[-self.keep :]), self.current()
        for _ in range(self.keep):  # after a rollback these are not the newest ones
            if number is None or number not in numbers:
                break
            kept.add(number)
            number = self.manifest(number).parent
        needed: set[int] = set()
        for number in kept:
            for release in self.lineage(number):
                if release.number in needed:
                    break
                needed.add(release.number)
                if release.full:
                    break
        return needed

    def _temporary(self, number: int) -> Path:
        return self.path / "releases" / f"{number:04d}.{secrets.token_hex(4)}.tmp"

    def clean(self, keep: set[int]) -> list[Path]:
        """Removes what killed writers have left, and releases that are not among ``keep``: those have never been
        current. Only the holder of the writer lock may call this."""
        releases = self.path / "releases"
        garbage = [*releases.glob("*.tmp"), *self.path.glob("*.tmp"), *releases.glob("[0-9]*[0-9]/*.tmp")]
        for number in self.numbers():
            if number not in keep:
                garbage.append(self.folder(number))
                continue
            # Of a damaged one, nothing is known of its files; reading it reports that.
            with suppress(CorruptFileError):
                files = self.manifest(number).files
                garbage += [path for path in self.folder(number).glob("tables-*") if path.name not in files]
        for path in garbage:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return garbage
