"""Names and ids of entities and relations in the fact store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from tkg_incremental.data.nearest import NameSearch, name_error

TABLES = {"entity": "entities", "relation": "relations"}
_CHUNK = 1 << 16  # names that are read as one text


class Names:
    """The names of entities or relations, each looked up when it is asked for. Ids count from 0 and are never reused.
    An alias has the id of the name that it stands for.

    Args:
        connection: Connection to the fact store.
        kind: ``"entity"`` or ``"relation"``.
        size: Names with this id or a later one count as unknown, such as those that a model has no rows for.
    """

    def __init__(self, connection: sqlite3.Connection, kind: str, size: int = 2**62) -> None:
        self.kind, self._size = kind, size
        self._connection, self._run, self._table = connection, connection.execute, TABLES[kind]

    def up_to(self, size: int) -> Names:
        """The same names without those of later ids."""
        return Names(self._connection, self.kind, size)

    def __len__(self) -> int:
        """Number of ids, those of erased names included."""
        return min(self._size, int(self._run(f"SELECT coalesce(max(id), -1) + 1 FROM {self._table}").fetchone()[0]))

    def __getitem__(self, index: int) -> str:
        return self.of([index])[0] or f"(erased {self.kind} {index})"

    def of(self, ids: Sequence[int]) -> list[str | None]:
        """The names of ids; ``None`` for an erased or unknown one."""
        sql = f"SELECT id, name FROM {self._table} WHERE id IN (SELECT value FROM json_each(?))"
        found = dict(self._run(sql, (json.dumps([int(number) for number in ids]),)))
        return [found.get(int(number)) for number in ids]

    def find(self, name: str) -> int | None:
        """The id of a name or an alias, written exactly like this; ``None`` if it is unknown."""
        aliases = "SELECT id FROM aliases WHERE kind = ?2 AND alias = ?1 AND id < ?3"
        sql = f"SELECT id FROM {self._table} WHERE name = ?1 AND id < ?3 UNION ALL {aliases} LIMIT 1"
        row = self._run(sql, (name, self.kind, self._size)).fetchone()
        return None if row is None else int(row[0])

    def index(self, name: str | int) -> int:
        """The id of a name or alias, without regard to case if that is unambiguous. An id is returned as it is. The
        error about an unknown name lists the nearest ones."""
        if isinstance(name, int):
            return name
        found = self.find(name)
        if found is not None:
            return found
        search = self._search()
        sql = "SELECT id FROM aliases WHERE alias = ? COLLATE NOCASE AND kind = ? AND id < ?"
        same = {int(row[0]) for row in self._run(sql, (name, self.kind, self._size))}
        same.update(search.equal(name) if name else ())
        if len(same) == 1:
            return same.pop()
        raise name_error(self.kind, name, self._known(same), self._known(search.nearest(name, 3)))

    def _known(self, ids: Iterable[int]) -> list[str]:
        return [name for name in self.of(list(ids)) if name]

    def _search(self) -> NameSearch:
        """The names of all ids. Read as one text, a million take 0.15 s; one by one, 0.6 s."""
        text = "CAST(group_concat(coalesce(name, ''), char(0)) AS BLOB)"
        sql = f"SELECT {text} FROM {self._table} WHERE id BETWEEN ? AND ?"
        size, parts = len(self), []
        for begin in range(0, size, _CHUNK):
            end = min(begin + _CHUNK, size)
            part = self._run(sql, (begin, end - 1)).fetchone()[0]
            if part.count(b"\0") != end - begin - 1:  # a name has the separator in it
                names = [(name or "").replace("\0", " ") for name in self.of(range(begin, end))]
                part = "\0".join(names).encode()
            parts.append(part)
        return NameSearch(b"\0".join(parts))

    def add(self, name: str) -> int:
        """The id of a name, in the running transaction. An unknown name gets the next id."""
        found = self.find(name)
        if found is None:
            # With the id given, the first one is 0, and a tombstone keeps its id from being reused.
            sql = f"INSERT INTO {self._table} SELECT coalesce(max(id), -1) + 1, ? FROM {self._table} RETURNING id"
            found = int(self._run(sql, (name,)).fetchall()[0][0])
        return found

    def add_aliases(self, aliases: Mapping[str, str]) -> None:
        """Adds aliases with the names they stand for, in one transaction. An alias may be given another meaning later;
        a name may not become an alias."""
        rows = []
        for alias, name in aliases.items():
            if self._run(f"SELECT 1 FROM {self._table} WHERE name = ?", (alias,)).fetchone():
                raise ValueError(f"an alias must not be the name of another {self.kind} (got {alias!r} for {name!r})")
            found = self.find(name)
            if found is None:
                raise ValueError(f"aliases must stand for names that exist (got {alias!r} for {name!r})")
            rows.append((self.kind, alias, found))
        self._run("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)", rows)
        self._run("COMMIT")

    def all_of(self, index: int) -> list[str]:
        """The name of an id and its aliases."""
        aliases = "SELECT alias FROM aliases WHERE kind = ?2 AND id = ?1"
        sql = f"SELECT name FROM {self._table} WHERE id = ?1 UNION ALL {aliases}"
        return [name for (name,) in self._run(sql, (index, self.kind)) if name]

    def containing(self, text: str) -> list[str]:
        """The names that contain a text. Reads all of them."""
        sql = f"SELECT name FROM {self._table} WHERE instr(name, ?) ORDER BY id"
        return [name for (name,) in self._run(sql, (text,))]
