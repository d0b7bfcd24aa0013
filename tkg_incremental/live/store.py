"""The fact store: names and facts, the log of updates and the releases, in one SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tkg_incremental.live.facts import CLOSED_COLUMNS, COLUMNS, Ints, facts_at, read_array, read_fact
from tkg_incremental.live.manifest import Release
from tkg_incremental.live.names import Names
from tkg_incremental.live.records import Change, Fact, GraphFolderError, Update
from tkg_incremental.live.revisions import apply_ids, begin_revision, get_number, restore, set_value
from tkg_incremental.live.schema import connect, create_tables

if TYPE_CHECKING:
    from typing_extensions import Self


#: Microseconds since 1970 at the end of the year 9999, the last one that Python has dates for.
MAX_CREATED = 253_402_300_800_000_000

# An update is applied if its release is an ancestor of the current one.
_UPDATES = """
WITH RECURSIVE ancestors (number) AS (
    SELECT ?1 UNION SELECT parent FROM releases JOIN ancestors USING (number)
)
SELECT id, recorded_at, clock, source, "release",
    CASE WHEN "release" IS NULL THEN 'pending' WHEN "release" IN ancestors THEN 'applied' ELSE 'undone' END AS state,
    (SELECT count(*) FROM changes WHERE "update" = u.id)
FROM updates u WHERE (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR hash = ?3) ORDER BY id
"""

_RELEASES = """
SELECT number, parent, created, clock,
    (SELECT json_group_array(id) FROM (SELECT id FROM updates WHERE "release" = number ORDER BY id)), metrics
FROM releases ORDER BY number
"""


class FactStore:
    """Facts with valid time (when they hold) and recorded time (when the graph knew of them).

    Instants of valid time are integers in the unit of the graph; intervals are half-open. Each commit makes a new
    *revision*, and earlier revisions can be read: look-ups take a ``revision``, by default the present one, and
    :meth:`state_at` gives that of a recorded instant. The cost of a look-up follows the answer and not the number of
    facts. Ids never change. A store belongs to the thread that opened it.

    Args:
        path: The SQLite file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise GraphFolderError(f"there is no fact store '{self.path}'")
        self.connection = connect(self.path)
        self.entities, self.relations = Names(self.connection, "entity"), Names(self.connection, "relation")

    @classmethod
    def create(cls, path: str | os.PathLike[str], unit: str) -> FactStore:
        """Creates an empty store in a new file, with a unit of time such as ``"day"``."""
        if Path(path).exists():
            raise GraphFolderError(f"'{path}' exists already")
        with closing(connect(Path(path))) as connection:
            connection.execute("BEGIN IMMEDIATE")
            create_tables(connection, unit)
            connection.execute("COMMIT")
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, unit={self.unit!r}, release={self.release})"

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()

    @property
    def unit(self) -> str:
        """Unit of time."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = 'unit'").fetchone()
        return str(row and row[0])

    @property
    def clock(self) -> int | None:
        """The last step of the graph; ``None`` before the first facts."""
        return get_number(self, "clock")

    @property
    def release(self) -> int | None:
        """The release that the facts belong to; ``None`` before the first one."""
        return get_number(self, "release")

    @property
    def num_entities(self) -> int:
        """Number of entity ids, those of erased entities included."""
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """Number of relation ids."""
        return len(self.relations)

    @property
    def num_facts(self) -> int:
        """Number of facts (intervals)."""
        counted = self.connection.execute("SELECT value FROM meta WHERE key = 'facts'").fetchone()
        # A store of an earlier version keeps no count.
        return int((counted or self.connection.execute("SELECT count(*) FROM facts").fetchone())[0])

    def _facts(self, where: str, values: tuple[int, ...], revision: int | None) -> Iterator[Fact]:
        rows = self.connection.execute(f"SELECT {COLUMNS} FROM {facts_at(revision)} WHERE {where}", values)
        return map(read_fact, rows)

    def answers(
        self,
        head: int | None,
        rel: int,
        tail: int | None,
        at: int | None = None,
        revision: int | None = None,
        limit: int = -1,
    ) -> list[Fact]:
        """Known facts that match a question, by id.

        Args:
            head: Entity id, or ``None`` if it is asked for.
            rel: Relation id.
            tail: Entity id, or ``None`` if it is asked for.
            at: Only facts that hold at this instant; ``None`` for all intervals.
            revision: The revision to look at.
            limit: Maximum number of facts; -1 for all.
        """
        if head is None and tail is None:
            raise ValueError("one of head and tail must be given (got None for both)")
        conditions, values = ["rel = ?"], [rel]
        for side, entity in (("head", head), ("tail", tail)):
            if entity is not None:
                conditions.append(f"{side} = ?")
                values.append(entity)
        if at is not None:
            conditions.append("valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)")
            values += [at, at]
        return sorted(self._facts(f"{' AND '.join(conditions)} LIMIT {int(limit)}", tuple(values), revision))

    def intervals(self, head: int, rel: int, tail: int, revision: int | None = None) -> list[Fact]:
        """The facts of a triple by their beginning. They are disjoint; one may begin where another ends."""
        return sorted(self.answers(head, rel, tail, revision=revision), key=lambda fact: fact.valid_from)

    def neighbours(self, entity: int, revision: int | None = None) -> list[Fact]:
        """All facts of an entity, on either side."""
        # Two look-ups by index: SQLite would not use both for an OR over a compound query.
        found = {*self._facts("head = ?", (entity,), revision), *self._facts("tail = ?", (entity,), revision)}
        return sorted(found)

    def facts_of(self, entities: Iterable[int]) -> Ints:
        """``[n, 6]`` the present facts of entities, on either side, by id; columns as of :meth:`facts_arrays`."""
        asked = json.dumps(list(entities))
        sides = (
            f"SELECT {CLOSED_COLUMNS} FROM facts WHERE {side} IN (SELECT value FROM json_each(?))"
            for side in ("head", "tail")
        )
        return read_array(self.connection.execute(" UNION ".join(sides) + " ORDER BY id", (asked, asked)), 6)

    def facts_arrays(self, revision: int | None = None) -> Ints:
        """``[6, n]`` id, head, rel, tail, valid_from and valid_to of all facts by id, with :data:`OPEN` for an open
        end. Reads all facts: for training from the beginning, not for updates."""
        sql = f"SELECT {CLOSED_COLUMNS} FROM {facts_at(revision)} ORDER BY id"
        return np.ascontiguousarray(read_array(self.connection.execute(sql), 6).T)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All changes of the block are committed together, or none if it raises."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    @contextmanager
    def preview(self) -> Iterator[int]:
        """Inside the block, look-ups show the facts with all pending changes applied, in a revision whose number it
        gets. Nothing is kept."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            revision = begin_revision(self, "preview")
            for update in self.updates("pending"):
                self._apply_update(update.id, revision)
            yield revision
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def state_at(self, recorded: int) -> tuple[int, int | None]:
        """The present revision at a recorded instant, in microseconds since 1970 (UTC), and the release that answered;
        0 and ``None`` if there was none yet."""
        run, sql = self.connection.execute, "SELECT coalesce(max(number), 0) FROM revisions WHERE recorded_at <= ?"
        revision = run(sql, (recorded,)).fetchone()[0]
        sql = "SELECT reason FROM revisions WHERE number <= ? AND reason LIKE '%release %' ORDER BY number DESC LIMIT 1"
        row = run(sql, (revision,)).fetchone()
        return int(revision), None if row is None else int(row[0].rpartition(" ")[2])

    def revision_of(self, release: int) -> int:
        """The revision with the facts of a release."""
        row = self.connection.execute("SELECT revision FROM releases WHERE number = ?", (release,)).fetchone()
        if row is None:
            last = self.connection.execute("SELECT max(number) FROM releases").fetchone()[0]
            raise GraphFolderError(f"release {release} is unknown to '{self.path}', whose last one is {last}")
        return int(row[0])

    def record(self, changes: Iterable[Change], clock: int, content_hash: str, source: str = "") -> int:
        """Records changes as pending, in one transaction, and returns the id of the update.

        Args:
            changes: Valid changes, see :meth:`ChangeSet.validate`.
            clock: The last step of the graph once they are applied.
            content_hash: Identifies the content, so that the same update is not applied twice.
            source: What the user calls it.
        """
        with self.transaction() as connection:
            last = connection.execute("SELECT coalesce(max(recorded_at), 0) FROM updates").fetchone()[0]
            values = (content_hash, max(time.time_ns() // 1000, last + 1), clock, source)
            sql = "INSERT INTO updates (hash, recorded_at, clock, source) VALUES (?, ?, ?, ?)"
            update = int(connection.execute(sql, values).lastrowid or 0)
            sql = 'INSERT INTO changes ("update", op, head, rel, tail, at, until, line) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
            for change in changes:
                head, rel = self.entities.add(change.head), self.relations.add(change.rel)
                ids = head, rel, self.entities.add(change.tail)
                connection.execute(sql, (update, change.op, *ids, change.at, change.until, change.line))
        return update

    def discard(self, update: int) -> None:
        """Forgets a pending update. Ids that its names were given stay theirs."""
        with self.transaction() as connection:
            if not connection.execute('DELETE FROM updates WHERE id = ? AND "release" IS NULL', (update,)).rowcount:
                raise GraphFolderError(f"update {update} is not pending")
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

    def updates(self, state: str | None = None, content_hash: str | None = None) -> list[Update]:
        """The recorded updates, oldest first; only those of a state (``"pending"``, ``"applied"`` or ``"undone"``) or
        with a content, if they are given."""
        return [Update(*row) for row in self.connection.execute(_UPDATES, (self.release, state, content_hash))]

    def find_update(self, content_hash: str) -> Update | None:
        """The pending or applied update with this content, if there is one."""
        return next((update for update in self.updates(None, content_hash) if update.state != "undone"), None)

    def releases(self) -> list[Release]:
        """The releases that have been current, oldest first."""
        found = []
        for number, parent, created, clock, ids, text in self.connection.execute(_RELEASES):
            try:
                metrics = dict(json.loads(text))
            except (ValueError, TypeError) as error:
                raise GraphFolderError(f"'{self.path}' is damaged: release {number} has no metrics ({error})") from None
            if type(created) is not int or type(clock) is not int or not 0 <= created < MAX_CREATED:
                got = f"got {created!r} and {clock!r}"
                raise GraphFolderError(f"'{self.path}' is damaged: release {number} has no times ({got})")
            found.append(Release(number, parent, created, clock, tuple(json.loads(ids)), metrics))
        return found

    def _apply_update(self, update: int, revision: int) -> None:
        sql = 'SELECT op, head, rel, tail, at, until FROM changes WHERE "update" = ? ORDER BY id'
        for row in self.connection.execute(sql, (update,)).fetchall():
            apply_ids(self, revision, *row)  # what no longer fits, after a rollback, has no effect

    def sync(self, chain: Sequence[Release]) -> None:
        """Brings the facts to the state of the last release of a chain, oldest first, in one transaction. The first
        time, its updates are applied. Later the revision it had is restored, which costs as much as has changed
        since."""
        target = chain[-1]
        if self.release == target.number:
            return
        with self.transaction() as connection:
            known = {number for (number,) in connection.execute("SELECT number FROM releases")}
            base = max((i for i, release in enumerate(chain) if release.number in known), default=-1)
            if base >= 0 and chain[base].number != self.release:
                number = chain[base].number
                restore(self, self.revision_of(number), f"back to release {number}")
            for release in chain[base + 1 :]:
                revision = begin_revision(self, f"release {release.number}")
                for update in release.updates:
                    self._apply_update(update, revision)
                    connection.execute('UPDATE updates SET "release" = ? WHERE id = ?', (release.number, update))
                values = (release.number, release.parent, release.created, release.clock)
                metrics = json.dumps(release.metrics)
                connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", (*values, metrics, revision))
            set_value(self, "release", target.number)
            set_value(self, "clock", target.clock)
