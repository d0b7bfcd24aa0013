"""Revisions of the facts: single changes, and the state at an earlier revision.

The table ``facts`` is the present state. A row that a revision changes or removes is kept as a version, so that earlier
revisions can be read and restored. All functions work in the running transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tkg_incremental.live.facts import COLUMNS
from tkg_incremental.live.records import OPEN, Change, Fact, GraphFolderError

if TYPE_CHECKING:
    from tkg_incremental.live.store import FactStore

Show = Callable[[int], str]


def get_number(store: FactStore, key: str) -> int | None:
    """An integer that the store keeps about itself."""
    row = store.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if row is None or row[0] is None or type(row[0]) is int:
        return row and row[0]
    raise GraphFolderError(f"the fact store is damaged: expected an integer as {key} (got {row[0]!r})")


def set_value(store: FactStore, key: str, value: object) -> None:
    """Sets what the store keeps about itself."""
    store.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def begin_revision(store: FactStore, reason: str) -> int:
    """Starts a revision for a reason such as ``"release 3"`` and returns its number."""
    sql = "SELECT coalesce(max(number), 0) + 1, coalesce(max(recorded_at), 0) FROM revisions"
    number, last = store.connection.execute(sql).fetchone()
    if not isinstance(last, int):
        raise GraphFolderError(f"the fact store is damaged: expected a time as recorded_at (got {last!r})")
    # Clocks may go backwards. Recorded time does not.
    instant = max(time.time_ns() // 1000, last + 1)
    store.connection.execute("INSERT INTO revisions VALUES (?, ?, ?)", (number, instant, reason))
    return int(number)


def restore(store: FactStore, revision: int, reason: str) -> None:
    """Makes a new revision with the facts of an earlier one. The cost follows what has changed since."""
    new = begin_revision(store, reason)
    run = store.connection.execute
    for row in run(f"SELECT {COLUMNS} FROM facts WHERE since > ? AND since > 1", (revision,)).fetchall():
        _remove(store, new, Fact(*row))
    sql = f"SELECT {COLUMNS} FROM versions WHERE until > ? AND since <= ?"
    for row in run(sql, (revision, revision)).fetchall():
        _insert(store, new, Fact(*row))


def _insert(store: FactStore, revision: int, fact: Fact) -> None:
    store.connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?)", (*fact, revision))
    sql = "INSERT INTO members VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET facts = facts + 1"
    store.connection.executemany(sql, [(fact.rel, 0, fact.head), (fact.rel, 1, fact.tail)])
    first = get_number(store, "first")
    if first is None or fact.valid_from < first:
        set_value(store, "first", fact.valid_from)


def _remove(store: FactStore, revision: int, fact: Fact) -> None:
    # A row that this very revision made was never the state of one: it leaves no version.
    store.connection.execute(
        f"INSERT INTO versions SELECT {COLUMNS}, since, ? FROM facts WHERE id = ? AND since < ?",
        (revision, fact.id, revision),
    )
    store.connection.execute("DELETE FROM facts WHERE id = ?", (fact.id,))
    sides = [(fact.rel, 0, fact.head), (fact.rel, 1, fact.tail)]
    where = "WHERE rel = ? AND side = ? AND entity = ?"
    store.connection.executemany(f"UPDATE members SET facts = facts - 1 {where}", sides)
    store.connection.executemany(f"DELETE FROM members {where} AND facts <= 0", sides)


def apply_change(store: FactStore, revision: int, change: Change, show: Show = str) -> str | None:
    """Applies one change with names to the revision that is being made, and returns why it does not fit, or ``None``.
    Names of an addition get ids; ``show`` formats instants."""
    parts = ((store.relations, change.rel), (store.entities, change.head), (store.entities, change.tail))
    ids = []
    for names, name in parts:
        found = names.add(name) if change.op == "add" else names.find(name)
        if found is None:
            return f"the {names.kind} {name!r} is unknown"
        ids.append(found)
    rel, head, tail = ids
    return apply_ids(store, revision, change.op, head, rel, tail, change.at, change.until, show)


def apply_ids(
    store: FactStore,
    revision: int,
    op: str,
    head: int,
    rel: int,
    tail: int,
    at: int | None,
    until: int | None,
    show: Show = str,
) -> str | None:
    """Applies one change with ids. Arguments and result as of :func:`apply_change` and :class:`Change`."""
    facts = store.intervals(head, rel, tail)
    if op == "retract":
        found = [fact for fact in facts if at is None or fact.holds(at)]
        for fact in found:
            _remove(store, revision, fact)
        return None if found else ("it is unknown" if at is None else f"it does not hold at {show(at)}")
    assert at is not None
    if op == "add":
        return _add(store, revision, facts, Fact(-1, head, rel, tail, at, until), show)
    for fact in facts:
        if fact.holds(at) and fact.valid_from < at:
            _remove(store, revision, fact)
            _insert(store, revision, fact._replace(valid_to=at))
            return None
    if not facts:
        return "it never held"
    if any(fact.valid_from == at for fact in facts):
        return f"it begins at {show(at)}, and an end must be later (retract what was never true)"
    if at < facts[0].valid_from:
        return f"the end is before its beginning at {show(facts[0].valid_from)}"
    return f"it does not hold at {show(at)}"


def _add(store: FactStore, revision: int, facts: list[Fact], new: Fact, show: Show) -> str | None:
    if new.valid_to is not None and new.valid_to <= new.valid_from:
        return f"the end is before its beginning at {show(new.valid_from)}"
    for fact in facts:
        if fact.holds(new.valid_from):
            return f"it holds already, since {show(fact.valid_from)}"
        if new.valid_from < fact.valid_from < (OPEN if new.valid_to is None else new.valid_to):
            return f"it holds again from {show(fact.valid_from)} on, and an addition before that needs an end"
    last = get_number(store, "last_fact")
    number = 0 if last is None else last + 1
    set_value(store, "last_fact", number)
    _insert(store, revision, new._replace(id=number))
    return None
