"""The SQLite schema of the fact store and how its file is opened."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tkg_incremental.live.records import GraphFolderError

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


_ABOUT = ("user_version", "application_id")
_COLUMNS = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
_PROGRAMS = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"


def create_tables(connection: sqlite3.Connection, unit: str) -> None:
    """Creates the tables of an empty store in the running transaction."""
    for statement in TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    create_indices(connection)
    about = [("unit", unit), ("clock", None), ("release", None), ("facts", 0)]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", about)
    for name, number in zip(_ABOUT, (SCHEMA_VERSION, APPLICATION_ID), strict=True):
        connection.execute(f"PRAGMA {name} = {number}")


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


def _is_on_read_only_medium(path: Path) -> bool:
    return hasattr(os, "statvfs") and path.exists() and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def connect(path: Path) -> sqlite3.Connection:
    """Opens the file of a store, if it is one of this version. A write-ahead log lets readers go on while a writer
    commits. ``secure_delete`` overwrites what is deleted."""
    # Where the folder cannot be written to, SQLite needs no log, which it could not create.
    read_only = _is_on_read_only_medium(path)
    address = f"{path.absolute().as_uri()}?mode={'ro&immutable=1' if read_only else 'rwc'}"
    connection = None
    try:
        connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None)
        _check(connection, path)
        for pragma in () if read_only else ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        for pragma in ("secure_delete = ON", "temp_store = MEMORY", "cache_size = -65536"):
            connection.execute(f"PRAGMA {pragma}")
    except (sqlite3.Error, GraphFolderError) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, GraphFolderError):
            raise
        remedy = "" if os.access(path.parent, os.W_OK) else "; readers need the right to write to its folder, too"
        raise GraphFolderError(f"cannot open '{path}': {error}{remedy}") from error
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Whether a file is new or a store of this version, with its tables and no other triggers and views, which could
    change what is written."""
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    (version,), (application,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in _ABOUT)
    if application != APPLICATION_ID:
        raise GraphFolderError(f"cannot open '{path}': it is a SQLite file, but no fact store")
    if version != SCHEMA_VERSION:
        raise GraphFolderError(f"cannot open '{path}': schema version {SCHEMA_VERSION} is expected (got {version})")
    with closing(sqlite3.connect(":memory:")) as expected:
        create_tables(expected, "day")
        wanted, usual = set(expected.execute(_COLUMNS)), set(expected.execute(_PROGRAMS))
    missing = sorted({".".join(names) for names in wanted - set(connection.execute(_COLUMNS))})
    if missing:
        raise GraphFolderError(f"cannot open '{path}': it is damaged, {', '.join(missing[:5])} missing")
    for kind, name, _ in sorted(set(connection.execute(_PROGRAMS)) - usual):
        raise GraphFolderError(f"cannot open '{path}': a fact store has no such {kind} (got {name!r})")
