"""The folder of a live graph: its files, the writer lock, and the commit protocol."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from torch import Tensor

from tkg_incremental.live.erase import resume_erasure
from tkg_incremental.live.graph_toml import KEEP, read_keep, read_settings, write_settings
from tkg_incremental.live.manifest import Release
from tkg_incremental.live.records import GraphFolderError, GraphLockedError
from tkg_incremental.live.releases import ReleaseFolder
from tkg_incremental.live.store import FactStore
from tkg_incremental.storage import atomic_write

if TYPE_CHECKING:
    from typing_extensions import Self


def check_free(path: str | os.PathLike[str]) -> None:
    """An error if a folder is neither empty nor missing."""
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        hint = "; it is a live graph: update it, or remove it first" if (path / "graph.toml").is_file() else ""
        raise GraphFolderError(f"'{path}' must be empty or missing{hint}")


class GraphFolder:
    """``graph.toml``, ``facts.db``, ``releases/`` and ``current`` in one folder.

    An update is recorded as pending, its release is written, and then ``current`` is replaced: the one commit point.
    The manifest of a release lists its updates, so that the state of the store follows from ``current``;
    :meth:`recover` brings it there. Use as a context manager, or call :meth:`close`.

    Args:
        path: The folder.
        write: Take the writer lock. Readers need no lock and never wait.
    """

    def __init__(self, path: str | os.PathLike[str], write: bool = False) -> None:
        self.path = Path(path)
        if not (self.path / "graph.toml").is_file() or not (self.path / "facts.db").is_file():
            hint = (
                "; it is a run: make a graph of it with create --from-run" if (self.path / "model.pt").is_file() else ""
            )
            raise GraphFolderError(f"'{self.path}' holds no graph (graph.toml and facts.db are expected){hint}")
        self._lock: FileLock | None = None
        if write:
            self._take_lock()
        try:
            self.settings = read_settings(self.path / "graph.toml")
            self.store = FactStore(self.path / "facts.db")
            self.releases = ReleaseFolder(self.path, read_keep(self.settings.get("releases", {})))
            if write:
                self.recover()
            elif self.store.release != self.releases.current():
                # If a writer is about to bring them together, the store's release answers until then.
                with suppress(GraphLockedError, OSError), self.writing():
                    pass
        except BaseException:
            self._give_up_lock()
            raise

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], unit: str, settings: Mapping[str, Mapping[str, Any]] | None = None
    ) -> GraphFolder:
        """Creates the folder of a graph without facts, which must be empty or missing, and opens it for writing.
        ``settings`` are tables of ``graph.toml``."""
        path = Path(path)
        check_free(path)
        (path / "releases").mkdir(parents=True)
        FactStore.create(path / "facts.db", unit).close()
        tables = dict(settings or {})
        tables = {"graph": {"unit": unit, **tables.pop("graph", {})}, **tables}
        write_settings(path / "graph.toml", {**tables, "releases": tables.get("releases", {"keep": KEEP})})
        return cls(path, write=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, current={self.releases.current()}, write={self.is_writer})"

    def close(self) -> None:
        """Closes the store and gives up the lock."""
        self.store.close()
        self._give_up_lock()

    @property
    def is_writer(self) -> bool:
        """Whether this object has the writer lock."""
        return self._lock is not None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Takes the writer lock for a block, if it is not held already, and finishes what a killed writer has left. A
        :class:`GraphLockedError` says that another process has it."""
        if self.is_writer:
            yield
            return
        self._take_lock()
        try:
            self.recover()
            yield
        finally:
            self._give_up_lock()

    def _take_lock(self) -> None:
        # The operating system releases the lock of a process that has died.
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise GraphLockedError(f"'{self.path}' is being written to by {self._holder()}") from None
        self._lock = lock
        about = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S%z")}
        with atomic_write(self.path / ".writer.json") as file:
            file.write(json.dumps(about).encode())

    def _holder(self) -> str:
        try:
            about = json.loads((self.path / ".writer.json").read_bytes())
            return f"process {about['pid']} on {about['host']}, since {about['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"  # that has just taken or given up the lock

    def _give_up_lock(self) -> None:
        if self._lock is not None:
            (self.path / ".writer.json").unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def write_candidate(
        self,
        tables: Mapping[str, Tensor],
        changed: Mapping[str, Tensor] | None,
        *,
        clock: int,
        updates: Sequence[int] | None = None,
        **about: Any,
    ) -> Release:
        """Writes tables as a release that is not current yet.

        Args:
            tables: All tables, whole.
            changed: For each table the rows that changed; ``None`` writes all tables.
            clock: The last step they have learnt.
            updates: Ids of the updates they have learnt; by default all pending ones.
            **about: ``metrics``, ``vocabulary`` and ``calibration`` of the :class:`Release`.
        """
        self.must_write()
        if updates is None:
            updates = [update.id for update in self.store.updates("pending")]
        number = max([-1, *self.releases.numbers(), *self._known()]) + 1
        about |= {"clock": clock, "updates": tuple(updates)}
        return self.releases.write_release(number, tables, changed, self.releases.current(), **about)

    def release(self, number: int) -> None:
        """Makes a release the current one: a new one, or an older one to roll back to. Then removes the releases that
        are no longer kept."""
        self.must_write()
        self.check_present(number)
        chain = self.releases.chain(number, self._known())
        self.releases.set_current(number)  # the commit point
        self.store.sync(chain)
        self.releases.prune()

    def pruned(self) -> list[int]:
        """Releases that have been current and are no longer on disk, oldest first."""
        return sorted(self._known() - set(self.releases.numbers()))

    def check_present(self, number: int) -> None:
        """Refuses a release that is unknown or no longer on disk."""
        present = self.releases.numbers()
        if number in self._known() - set(present):
            left = f"the oldest one that is left is {min(present, default=None)}"
            raise ValueError(
                f"release {number} was removed: [releases] of graph.toml keeps {self.releases.keep}; {left}"
            )
        if number not in present:
            raise ValueError(f"release must be one of {', '.join(map(str, present))} (got {number})")

    def recover(self) -> None:
        """Brings the store to the current release, finishes an erasure, and removes what a killed writer has left."""
        self.must_write()
        current = self.releases.current()
        if current is None and self.store.release is not None:  # the file was lost
            self.releases.set_current(self.store.release)
        elif current is not None and current != self.store.release:
            self.store.sync(self.releases.chain(current, self._known()))
        resume_erasure(self)
        self.releases.clean(self._known())

    def _known(self) -> set[int]:
        """Releases that the store knows: those that have been current."""
        return {release.number for release in self.store.releases()}

    def must_write(self) -> None:
        """Refuses to go on without the writer lock."""
        if not self.is_writer:
            raise GraphFolderError(f"'{self.path}' was opened for reading (open it with write=True)")
