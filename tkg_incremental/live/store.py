"""The fact store: entities, relations, facts with valid time and recorded time, changes and releases, in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from tkg_incremental.live.lookups import FactLookups
from tkg_incremental.live.records import OPEN, Change, Fact, Release, Update
from tkg_incremental.live.schema import StoreError, connect, create_tables
from tkg_incremental.live.vocabulary import Vocabulary

__all__ = ["FactStore"]


class FactStore(Vocabulary, FactLookups):
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
        self._revision: int | None = None  # the one that the running transaction makes

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

    def __enter__(self) -> FactStore:
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

    # -- what the store is about

    def _get(self, key: str) -> object:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _set(self, key: str, value: object) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def unit(self) -> str:
        """Unit of time."""
        return str(self._get("unit"))

    @property
    def clock(self) -> int | None:
        """The last step of the graph; ``None`` before the first facts."""
        value = self._get("clock")
        return None if value is None else int(value)  # type: ignore[call-overload, no-any-return]

    @property
    def release(self) -> int | None:
        """The release that the facts belong to; ``None`` before the first one."""
        value = self._get("release")
        return None if value is None else int(value)  # type: ignore[call-overload, no-any-return]

    # -- revisions

    def begin_revision(self, reason: str) -> int:
        """Starts a revision in the running transaction.

        Args:
            reason: Why the facts change, such as ``"release 3"``.
        """
        number, last = self.connection.execute(
            "SELECT coalesce(max(number), 0) + 1, max(recorded_at) FROM revisions"
        ).fetchone()
        # Clocks may go backwards. Recorded time does not.
        instant = max(time.time_ns() // 1000, (last or 0) + 1)
        self.connection.execute("INSERT INTO revisions VALUES (?, ?, ?)", (number, instant, reason))
        self._revision = int(number)
        return self._revision

    def revision_at(self, recorded: int) -> int:
        """The revision that was the present one at a recorded instant; 0 if there was none.

        Args:
            recorded: Microseconds since 1970 (UTC).
        """
        sql = "SELECT coalesce(max(number), 0) FROM revisions WHERE recorded_at <= ?"
        return int(self.connection.execute(sql, (recorded,)).fetchone()[0])

    def revision_of(self, release: int) -> int:
        """The revision with the facts of a release."""
        row = self.connection.execute("SELECT revision FROM releases WHERE number = ?", (release,)).fetchone()
        if row is None:
            raise StoreError(f"release {release} is unknown to '{self.path}'")
        return int(row[0])

    def _insert(self, fact: Fact, members: bool = True) -> None:
        assert self._revision is not None
        self.connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?)", (*fact, self._revision))
        if members:
            sql = "INSERT INTO members VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET facts = facts + 1"
            self.connection.executemany(sql, [(fact.rel, 0, fact.head), (fact.rel, 1, fact.tail)])
            first = self._get("first")
            if first is None or fact.valid_from < int(first):  # type: ignore[call-overload]
                self._set("first", fact.valid_from)

    def _remove(self, fact: Fact, members: bool = True) -> None:
        assert self._revision is not None
        # A row that this very revision made was never the state of one: it leaves no version.
        self.connection.execute(
            "INSERT INTO versions SELECT id, head, rel, tail, valid_from, valid_to, since, ? FROM facts "
            "WHERE id = ? AND since < ?",
            (self._revision, fact.id, self._revision),
        )
        self.connection.execute("DELETE FROM facts WHERE id = ?", (fact.id,))
        if members:
            sides = [(fact.rel, 0, fact.head), (fact.rel, 1, fact.tail)]
            where = "WHERE rel = ? AND side = ? AND entity = ?"
            self.connection.executemany(f"UPDATE members SET facts = facts - 1 {where}", sides)
            self.connection.executemany(f"DELETE FROM members {where} AND facts <= 0", sides)

    def _next_fact(self) -> int:
        sql = "SELECT max((SELECT coalesce(max(id), -1) FROM facts), (SELECT coalesce(max(id), -1) FROM versions))"
        return max(int(self.connection.execute(sql).fetchone()[0]), int(self._get("last_fact") or -1)) + 1  # type: ignore[call-overload]

    def apply(self, change: Change, show: Callable[[int], str] = str) -> str | None:
        """Applies one change in the running transaction and revision.

        Args:
            change: The change. Names of an addition get ids.
            show: Formats instants for the reason.

        Returns:
            Why the change was not applied, or ``None``.
        """
        ids = [self.entity_id(change.head), self.relation_id(change.rel), self.entity_id(change.tail)]
        if change.op == "add":
            head, rel, tail = self.add_entities([change.head])[0], self.add_relations([change.rel])[0], 0
            tail = self.add_entities([change.tail])[0]
        elif None in ids:
            kind = "relation" if ids[1] is None else "entity"
            name = (change.head, change.rel, change.tail)[ids.index(None) if ids[1] is not None else 1]
            return f"the {kind} {name!r} is unknown"
        else:
            head, rel, tail = ids  # type: ignore[assignment]
        return self._apply(change.op, head, rel, tail, change.at, change.until, show)

    def _apply(
        self,
        op: str,
        head: int,
        rel: int,
        tail: int,
        at: int | None,
        until: int | None,
        show: Callable[[int], str] = str,
    ) -> str | None:
        facts = sorted(self.answers(head, rel, tail), key=lambda fact: fact.valid_from)
        if op == "retract":
            found = [fact for fact in facts if at is None or fact.holds(at)]
            for fact in found:
                self._remove(fact)
            return None if found else ("it is unknown" if at is None else f"it does not hold at {show(at)}")
        assert at is not None
        if op == "add":
            return self._add(facts, Fact(-1, head, rel, tail, at, until), show)
        for fact in facts:
            if fact.valid_from < at and (fact.valid_to is None or at < fact.valid_to):
                self._remove(fact, members=False)
                self._insert(fact._replace(valid_to=at), members=False)
                return None
        if not facts:
            return "it never held"
        if any(fact.valid_from == at for fact in facts):
            return f"it begins at {show(at)}, and an end must be later (retract what was never true)"
        if at < facts[0].valid_from:
            return f"the end is before its beginning at {show(facts[0].valid_from)}"
        return f"it does not hold at {show(at)}"

    def _add(self, facts: Sequence[Fact], new: Fact, show: Callable[[int], str]) -> str | None:
        if new.valid_to is not None and new.valid_to <= new.valid_from:
            return f"the end is before its beginning at {show(new.valid_from)}"
        for fact in facts:
            if fact.holds(new.valid_from):
                return f"it holds already, since {show(fact.valid_from)}"
            if new.valid_from < fact.valid_from < (OPEN if new.valid_to is None else new.valid_to):
                return f"it holds again from {show(fact.valid_from)} on, and an addition before that needs an end"
        number = self._next_fact()
        self._set("last_fact", number)
        self._insert(new._replace(id=number))
        return None

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
                    'INSERT INTO changes ("update", op, head, rel, tail, at, until, line) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
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
            "SELECT op, coalesce(h.name, ''), coalesce(r.name, ''), coalesce(t.name, ''), at, until, line FROM changes c "
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
        return [
            Release(number, parent, created, clock, tuple(members.get(number, ())), json.loads(metrics))
            for number, parent, created, clock, metrics in rows
        ]

    def _apply_update(self, update: int) -> None:
        sql = 'SELECT op, head, rel, tail, at, until FROM changes WHERE "update" = ? ORDER BY id'
        for row in self.connection.execute(sql, (update,)).fetchall():
            self._apply(*row)  # what no longer fits, after a rollback, has no effect

    def _restore(self, revision: int, reason: str) -> None:
        self.begin_revision(reason)
        columns = "id, head, rel, tail, valid_from, valid_to"
        later = self.connection.execute(
            f"SELECT {columns} FROM facts WHERE since > ? AND since > 1", (revision,)
        ).fetchall()
        for row in later:
            self._remove(Fact(*row))
        earlier = self.connection.execute(
            f"SELECT {columns} FROM versions WHERE until > ? AND since <= ?", (revision, revision)
        ).fetchall()
        for row in earlier:
            self._insert(Fact(*row))

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
