"""The fact store: entities, relations, facts with valid time and recorded time, changes and releases, in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tkg_incremental.live.manifest import Release
from tkg_incremental.live.records import Change, Update
from tkg_incremental.live.revisions import Revisions
from tkg_incremental.live.schema import StoreError, connect, create_tables

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["FactStore"]

#: Microseconds since 1970 at the end of the year 9999, the last one that Python has dates for.
MAX_CREATED = 253_402_300_800_000_000


class FactStore(Revisions):
    """Facts with valid time (when they hold) and recorded time (when the graph knew of them).

    Instants of valid time are integers in the unit of the graph; intervals are half-open. Each commit makes a new
    *revision*, and earlier revisions can be read. Ids never change. A store belongs to the thread that opened it.

    Args:
        path: The SQLite file.
        read_only: Open without the right to write.
    """

    def __init__(self, path: str | os.PathLike[str], read_only: bool = False) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise StoreError(f"there is no fact store '{self.path}'")
        self.connection = connect(self.path, read_only)

    @classmethod
    def create(cls, path: str | os.PathLike[str], unit: str) -> FactStore:
        """Creates an empty store.

        Args:
            path: The SQLite file; must not exist.
            unit: Unit of time, such as ``"day"``.
        """
        path = Path(path)
        if path.exists():
            raise StoreError(f"'{path}' exists already")
        connection = connect(path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            create_tables(connection, unit)
            connection.execute("COMMIT")
        finally:
            connection.close()
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, unit={self.unit!r}, release={self.release})"

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All changes of the block are committed together, or none if it raises."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        finally:
            self._revision = None
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    @contextmanager
    def preview(self) -> Iterator[None]:
        """Inside the block, look-ups show the facts with all pending changes applied. Nothing is kept."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            self.begin_revision("preview")
            for update in self.updates("pending"):
                self._apply_update(update.id)
            yield
        finally:
            self._revision = None
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    # -- updates and releases

    def record(self, changes: Iterable[Change], clock: int, content_hash: str, source: str = "") -> int:
        """Records changes as pending, in one transaction.

        Args:
            changes: Valid changes, see :meth:`ChangeSet.validate`.
            clock: The last step of the graph once they are applied.
            content_hash: Identifies the content, so that the same update is not applied twice.
            source: What the user calls it.

        Returns:
            The id of the update.
        """
        with self.transaction() as connection:
            last = connection.execute("SELECT coalesce(max(recorded_at), 0) FROM updates").fetchone()[0]
            cursor = connection.execute(
                'INSERT INTO updates (hash, recorded_at, clock, source, "release") VALUES (?, ?, ?, ?, NULL)',
                (content_hash, max(time.time_ns() // 1000, last + 1), clock, source),
            )
            update = int(cursor.lastrowid or 0)
            for change in changes:
                head, tail = self.add_entities([change.head, change.tail])
                (rel,) = self.add_relations([change.rel])
                values = (update, change.op, head, rel, tail, change.at, change.until, change.line)
                connection.execute(
                    'INSERT INTO changes ("update", op, head, rel, tail, at, until, line) '
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
        return update

    def discard(self, update: int) -> None:
        """Forgets a pending update. Ids that its names were given stay theirs."""
        with self.transaction() as connection:
            if not connection.execute('DELETE FROM updates WHERE id = ? AND "release" IS NULL', (update,)).rowcount:
                raise StoreError(f"update {update} is not pending")
            connection.execute('DELETE FROM changes WHERE "update" = ?', (update,))

    def changes(self, update: int) -> list[Change]:
        """The changes of an update, with names. An erased name is empty."""
        sql = (
            "SELECT op, coalesce(h.name, ''), coalesce(r.name, ''), coalesce(t.name, ''), at, until, line "
            "FROM changes c "
            "JOIN entities h ON h.id = head JOIN relations r ON r.id = rel JOIN entities t ON t.id = tail "
            'WHERE "update" = ? ORDER BY c.id'
        )
        return [Change(*row) for row in self.connection.execute(sql, (update,))]

    def _ancestors(self, release: int | None) -> set[int]:
        parents = dict(self.connection.execute("SELECT number, parent FROM releases"))
        found: set[int] = set()
        while release is not None and release not in found:
            found.add(release)
            release = parents.get(release)
        return found

    def updates(self, state: str | None = None) -> list[Update]:
        """The recorded updates, oldest first.

        Args:
            state: Only those that are ``"pending"``, ``"applied"`` or ``"undone"``.
        """
        applied = self._ancestors(self.release)
        sql = (
            'SELECT u.id, recorded_at, clock, source, "release", '
            '(SELECT count(*) FROM changes WHERE "update" = u.id) FROM updates u ORDER BY u.id'
        )
        found = []
        for number, recorded_at, clock, source, release, count in self.connection.execute(sql).fetchall():
            kind = "pending" if release is None else "applied" if release in applied else "undone"
            found.append(Update(number, recorded_at, clock, source, release, kind, count))
        return [update for update in found if state in (None, update.state)]

    def find_update(self, content_hash: str) -> Update | None:
        """The pending or applied update with this content, if there is one."""
        rows = self.connection.execute("SELECT id FROM updates WHERE hash = ?", (content_hash,)).fetchall()
        known = {row[0] for row in rows}
        return next((update for update in self.updates() if update.id in known and update.state != "undone"), None)

    def releases(self) -> list[Release]:
        """The releases that have been current, oldest first."""
        members: dict[int, list[int]] = {}
        for update, release in self.connection.execute('SELECT id, "release" FROM updates WHERE "release" IS NOT NULL'):
            members.setdefault(release, []).append(update)
        rows = self.connection.execute("SELECT number, parent, created, clock, metrics FROM releases ORDER BY number")
        return [self._release(row, tuple(members.get(row[0], ()))) for row in rows]

    def _release(self, row: tuple[Any, ...], updates: tuple[int, ...]) -> Release:
        number, parent, created, clock, text = row
        try:
            metrics = dict(json.loads(text))
        except (ValueError, TypeError) as error:
            raise StoreError(f"'{self.path}' is damaged: release {number} has no metrics ({error})") from None
        if type(created) is not int or type(clock) is not int or not 0 <= created < MAX_CREATED:
            raise StoreError(f"'{self.path}' is damaged: release {number} has no times (got {created!r} and {clock!r})")
        return Release(number, parent, created, clock, updates, metrics)

    def _apply_update(self, update: int) -> None:
        sql = 'SELECT op, head, rel, tail, at, until FROM changes WHERE "update" = ? ORDER BY id'
        for row in self.connection.execute(sql, (update,)).fetchall():
            self._apply(*row)  # what no longer fits, after a rollback, has no effect

    def sync(self, chain: Sequence[Release]) -> bool:
        """Brings the facts to the state of a release, in one transaction.

        The first time, its pending updates are applied. Later the revision it had is restored, which costs as much
        as has changed since.

        Args:
            chain: The release and its ancestors, oldest first.

        Returns:
            Whether anything was to be done.
        """
        target = chain[-1]
        if self.release == target.number:
            return False
        with self.transaction() as connection:
            known = {number for (number,) in connection.execute("SELECT number FROM releases")}
            base = max((i for i, release in enumerate(chain) if release.number in known), default=None)
            if base is not None and chain[base].number != self.release:
                self._restore(self.revision_of(chain[base].number), f"back to release {chain[base].number}")
            for release in chain[0 if base is None else base + 1 :]:
                revision = self.begin_revision(f"release {release.number}")
                for update in release.updates:
                    self._apply_update(update)
                marks = [(release.number, update) for update in release.updates]
                connection.executemany('UPDATE updates SET "release" = ? WHERE id = ?', marks)
                values = (
                    release.number,
                    release.parent,
                    release.created,
                    release.clock,
                    json.dumps(release.metrics),
                    revision,
                )
                connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", values)
            self._set("release", target.number)
            self._set("clock", target.clock)
        return True
