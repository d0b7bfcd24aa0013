"""The SQLite schema of the fact store and how its file is opened."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

__all__ = ["SCHEMA_VERSION", "StoreError", "connect", "create_indices", "create_tables", "drop_indices"]

SCHEMA_VERSION = 2
APPLICATION_ID = 0x544B4749  # "TKGI"

# The table `facts` is the present state. `since` is the revision that made a row what it is; a row that a later
# revision changes or removes goes to `versions`, with the revisions between which it was the state.
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE entities (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE relations (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE aliases (kind TEXT, alias TEXT, id INTEGER NOT NULL, PRIMARY KEY (kind, alias)) WITHOUT ROWID;
CREATE TABLE facts (
    id INTEGER PRIMARY KEY, head INTEGER NOT NULL, rel INTEGER NOT NULL, tail INTEGER NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, since INTEGER NOT NULL
);
CREATE TABLE versions (
    id INTEGER NOT NULL, head INTEGER NOT NULL, rel INTEGER NOT NULL, tail INTEGER NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, since INTEGER NOT NULL, until INTEGER NOT NULL
);
CREATE TABLE members (
    rel INTEGER, side INTEGER, entity INTEGER, facts INTEGER NOT NULL, PRIMARY KEY (rel, side, entity)
) WITHOUT ROWID;
CREATE TABLE revisions (number INTEGER PRIMARY KEY, recorded_at INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE updates (
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT, recorded_at INTEGER NOT NULL, clock INTEGER NOT NULL,
    source TEXT NOT NULL, "release" INTEGER
);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, "update" INTEGER NOT NULL, op TEXT NOT NULL, head INTEGER NOT NULL,
    rel INTEGER NOT NULL, tail INTEGER NOT NULL, at INTEGER, until INTEGER, line INTEGER NOT NULL
);
CREATE TABLE releases (
    number INTEGER PRIMARY KEY, parent INTEGER, created INTEGER NOT NULL, clock INTEGER NOT NULL,
    metrics TEXT NOT NULL, revision INTEGER NOT NULL
);
CREATE INDEX aliases_by_id ON aliases (id);
CREATE INDEX versions_by_head ON versions (head, rel);
CREATE INDEX versions_by_tail ON versions (tail, rel);
CREATE INDEX versions_by_until ON versions (until);
CREATE INDEX changes_by_update ON changes ("update");
CREATE INDEX updates_by_release ON updates ("release");
"""

# `facts_by_since` leaves out the first import (revision 1): it costs what changed, not what there is.
INDICES = {
    "facts_by_head": "facts (head, rel)",
    "facts_by_tail": "facts (tail, rel)",
    "facts_by_since": "facts (since) WHERE since > 1",
    "facts_by_end": "facts (valid_to) WHERE valid_to IS NOT NULL",
}

# SQLite counts rows by reading all of them.
TRIGGERS = {
    "facts_inserted": "INSERT ON facts BEGIN UPDATE meta SET value = value + 1 WHERE key = 'facts'; END",
    "facts_deleted": "DELETE ON facts BEGIN UPDATE meta SET value = value - 1 WHERE key = 'facts'; END",
}


_COLUMNS = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"

_PROGRAMS = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"


class StoreError(Exception):
    """A fact store is missing, damaged, or of another version."""


def create_tables(connection: sqlite3.Connection, unit: str) -> None:
    """Creates the tables of an empty store in the running transaction.

    Args:
        connection: An open connection.
        unit: Unit of time of the graph's instants.
    """
    for statement in TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    create_indices(connection)
    about = [("unit", unit), ("clock", None), ("release", None), ("facts", 0)]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", about)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def create_indices(connection: sqlite3.Connection) -> None:
    """Creates the indices and triggers of the facts, after a bulk import."""
    for name, columns in INDICES.items():
        connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {columns}")
    for name, action in TRIGGERS.items():
        connection.execute(f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {action}")


def drop_indices(connection: sqlite3.Connection) -> None:
    """Drops the indices and triggers of the facts, before a bulk import."""
    for name in INDICES:
        connection.execute(f"DROP INDEX IF EXISTS {name}")
    for name in TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Whether the file has the tables of a store, and no other triggers and views, which could change what is
    written."""
    with closing(sqlite3.connect(":memory:")) as expected:
        create_tables(expected, "day")
        wanted, usual = set(expected.execute(_COLUMNS)), set(expected.execute(_PROGRAMS))
    missing = sorted({".".join(names) for names in wanted - set(connection.execute(_COLUMNS))})
    if missing:
        raise StoreError(f"cannot open '{path}': it is damaged, {', '.join(missing[:5])} missing")
    for kind, name, _ in sorted(set(connection.execute(_PROGRAMS)) - usual):
        raise StoreError(f"cannot open '{path}': a fact store has no such {kind} (got {name!r})")


def _is_on_read_only_medium(path: Path) -> bool:
    if not hasattr(os, "statvfs") or not path.exists():
        return False
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """Opens the file of a store.

    A write-ahead log lets readers go on while a writer commits. ``secure_delete`` overwrites what is deleted.

    Args:
        path: The file.
        read_only: Open without the right to write.

    Raises:
        StoreError: If the file is no store of this version.
    """
    if _is_on_read_only_medium(path):
        # The folder cannot be written to: SQLite needs no log, which it could not create.
        mode, read_only = "ro&immutable=1", True
    else:
        mode = "ro" if read_only else "rwc"
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=30, isolation_level=None
        )
    except sqlite3.Error as error:
        raise StoreError(f"cannot open '{path}': {error}") from error
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not empty and application != APPLICATION_ID:
            raise StoreError(f"cannot open '{path}': it is a SQLite file, but no fact store")
        if not empty and version != SCHEMA_VERSION:
            raise StoreError(f"cannot open '{path}': schema version {SCHEMA_VERSION} is expected (got {version})")
        if not empty:
            _check_tables(connection, path)
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")
    except sqlite3.DatabaseError as error:
        connection.close()
        remedy = "" if os.access(path.parent, os.W_OK) else "; readers need the right to write to its folder, too"
        raise StoreError(f"cannot open '{path}': {error}{remedy}") from error
    except StoreError:
        connection.close()
        raise
    return connection
