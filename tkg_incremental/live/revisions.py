"""Revisions of the facts: single changes, and the state at an earlier revision."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tkg_incremental.live.lookups import FactLookups
from tkg_incremental.live.records import OPEN, Change, Fact
from tkg_incremental.live.schema import StoreError
from tkg_incremental.live.vocabulary import Vocabulary

__all__ = ["Revisions"]


class Revisions(Vocabulary, FactLookups):
    """The changing half of :class:`~tkg_incremental.live.FactStore`.

    The table ``facts`` is the present state. A row that a revision changes or removes is kept as a version, so that
    earlier revisions can be read and restored.
    """

    path: Path
    _revision: int | None = None  # the one that the running transaction makes

    # -- what the store is about

    def _get(self, key: str) -> object:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _get_number(self, key: str) -> int | None:
        value = self._get(key)
        if value is None or type(value) is int:
            return value
        raise StoreError(f"'{self.path}' is damaged: expected an integer as {key} (got {value!r})")

    def _set(self, key: str, value: object) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def unit(self) -> str:
        """Unit of time."""
        return str(self._get("unit"))

    @property
    def clock(self) -> int | None:
        """The last step of the graph; ``None`` before the first facts."""
        return self._get_number("clock")

    @property
    def release(self) -> int | None:
        """The release that the facts belong to; ``None`` before the first one."""
        return self._get_number("release")

    # -- revisions

    def begin_revision(self, reason: str) -> int:
        """Starts a revision in the running transaction.

        Args:
            reason: Why the facts change, such as ``"release 3"``.
        """
        number, last = self.connection.execute(
            "SELECT coalesce(max(number), 0) + 1, max(recorded_at) FROM revisions"
        ).fetchone()
        if not isinstance(last, int | None):
            raise StoreError(f"'{self.path}' is damaged: expected a time as recorded_at (got {last!r})")
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

    def release_at(self, revision: int) -> int | None:
        """The release that answered at a revision; ``None`` if there was none yet."""
        sql = "SELECT reason FROM revisions WHERE number <= ? AND reason LIKE '%release %' ORDER BY number DESC LIMIT 1"
        row = self.connection.execute(sql, (revision,)).fetchone()
        return None if row is None else int(row[0].rpartition(" ")[2])

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
            first = self._get_number("first")
            if first is None or fact.valid_from < first:
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
        last = self._get_number("last_fact")
        number = 0 if last is None else last + 1
        self._set("last_fact", number)
        return number

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
        self._insert(new._replace(id=self._next_fact()))
        return None

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
