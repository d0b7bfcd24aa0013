"""Names and ids of entities and relations in the fact store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Vocabulary"]

KINDS = {"entities": "entity", "relations": "relation"}


class Vocabulary:
    """The names half of :class:`~tkg_incremental.live.FactStore`. Ids count from 0 and are never reused. An alias has
    the id of the name that it stands for."""

    connection: sqlite3.Connection

    def _id(self, table: str, name: str) -> int | None:
        run, kind = self.connection.execute, KINDS[table]
        row = run(f"SELECT id FROM {table} WHERE name = ?", (name,)).fetchone()
        row = row or run("SELECT id FROM aliases WHERE kind = ? AND alias = ?", (kind, name)).fetchone()
        return None if row is None else int(row[0])

    def add_aliases(self, aliases: Mapping[str, str], kind: str = "entity") -> None:
        """Adds further names, in one transaction.

        Args:
            aliases: Aliases with the names they stand for. An alias may be given another meaning later; a name may not
                become an alias.
            kind: ``"entity"`` or ``"relation"``.
        """
        table = "entities" if kind == "entity" else "relations"
        rows = []
        for alias, name in aliases.items():
            if self.connection.execute(f"SELECT 1 FROM {table} WHERE name = ?", (alias,)).fetchone():
                raise ValueError(f"an alias must not be the name of another {kind} (got {alias!r} for {name!r})")
            found = self._id(table, name)
            if found is None:
                raise ValueError(f"aliases must stand for names that exist (got {alias!r} for {name!r})")
            rows.append((kind, alias, found))
        if rows:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)", rows)
            self.connection.execute("COMMIT")

    def all_names(self, entity: int) -> list[str]:
        """The name of an entity and its aliases."""
        aliases = "SELECT alias FROM aliases WHERE kind = 'entity' AND id = ?"
        sql = f"SELECT name FROM entities WHERE id = ? UNION ALL {aliases}"
        return [name for (name,) in self.connection.execute(sql, (entity, entity)) if name]

    def _add_names(self, table: str, names: Iterable[str]) -> list[int]:
        ids = []
        for name in names:
            found = self._id(table, name)
            if found is None:
                # With the id given, the first one is 0, and a tombstone keeps its id from being reused.
                sql = f"INSERT INTO {table} SELECT coalesce(max(id), -1) + 1, ? FROM {table} RETURNING id"
                found = int(self.connection.execute(sql, (name,)).fetchall()[0][0])
            ids.append(found)
        return ids

    def _names(self, table: str, ids: Sequence[int]) -> list[str | None]:
        sql = f"SELECT id, name FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        found = dict(self.connection.execute(sql, (json.dumps([int(number) for number in ids]),)))
        return [found.get(int(number)) for number in ids]

    def _count(self, table: str) -> int:
        return int(self.connection.execute(f"SELECT coalesce(max(id), -1) + 1 FROM {table}").fetchone()[0])

    @property
    def num_entities(self) -> int:
        """Number of entity ids, those of erased entities included."""
        return self._count("entities")

    @property
    def num_relations(self) -> int:
        """Number of relation ids."""
        return self._count("relations")

    def entity_id(self, name: str) -> int | None:
        """Id of an entity, or ``None`` if the name is unknown."""
        return self._id("entities", name)

    def relation_id(self, name: str) -> int | None:
        """Id of a relation, or ``None`` if the name is unknown."""
        return self._id("relations", name)

    def entity_names(self, ids: Sequence[int]) -> list[str | None]:
        """Names of entities; ``None`` for an erased entity or an unknown id."""
        return self._names("entities", ids)

    def relation_names(self, ids: Sequence[int]) -> list[str | None]:
        """Names of relations; ``None`` for an unknown id."""
        return self._names("relations", ids)

    def names_containing(self, text: str) -> list[str]:
        """Names of entities that contain a text. Reads all of them."""
        sql = "SELECT name FROM entities WHERE instr(name, ?) ORDER BY id"
        return [name for (name,) in self.connection.execute(sql, (text,))]

    def add_entities(self, names: Iterable[str]) -> list[int]:
        """Ids of entities, in the running transaction. Unknown names get the next ids."""
        return self._add_names("entities", names)

    def add_relations(self, names: Iterable[str]) -> list[int]:
        """Ids of relations, in the running transaction. Unknown names get the next ids."""
        return self._add_names("relations", names)
