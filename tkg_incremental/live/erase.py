"""Erasure from the files of a graph: the store, the releases, and an audit of every byte."""

from __future__ import annotations

import html
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.live.records import GraphFolderError
from tkg_incremental.live.release_files import read_parts
from tkg_incremental.live.releases import ReleaseFolder
from tkg_incremental.live.revisions import begin_revision, set_value
from tkg_incremental.live.store import FactStore
from tkg_incremental.live.tensors import write_tensors

if TYPE_CHECKING:
    from tkg_incremental.live.folder import GraphFolder


CHUNK = 1 << 24
ERASED = "[erased]"
Rows = Mapping[str, tuple[Tensor, Tensor]]
Ids = tuple[int, ...]


def erase_storage(folder: GraphFolder, ids: Ids, rows: Rows | None = None) -> None:
    """Removes an entity or a fact from all files of a graph. A killed erasure is finished by :func:`resume_erasure`.

    Args:
        folder: The graph, opened for writing.
        ids: ``(entity,)``, which stays without a name and without facts and changes, or ``(head, rel, tail)``, of which
            all intervals, versions and changes are removed.
        rows: For each table the rows to set in every release, and their values. Shapes ``[n]`` and ``[n, …]``.
    """
    folder.must_write()
    # The names are needed to clear the texts of manifests; they leave the store last.
    names = folder.store.entities.all_of(ids[0]) if len(ids) == 1 else []
    plan = {table: [index.tolist(), values.tolist()] for table, (index, values) in (rows or {}).items()}
    with folder.store.transaction():
        erase_from_store(folder.store, ids)
        set_value(folder.store, "erasing", json.dumps({"rows": plan, "names": names}))
    resume_erasure(folder)


def erase_from_store(store: FactStore, ids: Ids) -> None:
    """Removes an entity or a fact from the store, in the running transaction. A name becomes a tombstone; its id stays
    taken."""
    run, is_entity = store.connection.execute, len(ids) == 1
    where = "(head = ?1 OR tail = ?1)" if is_entity else "head = ? AND rel = ? AND tail = ?"
    # Sources are names of files that people choose; hashes could confirm a guess of the content.
    updates = f'SELECT "update" FROM changes WHERE {where}'
    run(f"UPDATE updates SET hash = NULL, source = '' WHERE id IN ({updates})", ids)
    for number, side in enumerate(("head", "tail")):
        counted = run(f"SELECT count(*), rel, {side} FROM facts WHERE {where} GROUP BY rel, {side}", ids).fetchall()
        sql = f"UPDATE members SET facts = facts - ? WHERE rel = ? AND entity = ? AND side = {number}"
        store.connection.executemany(sql, counted)
    run("DELETE FROM members WHERE facts <= 0")
    for table in ("facts", "versions", "changes"):
        run(f"DELETE FROM {table} WHERE {where}", ids)
    if is_entity:
        run("DELETE FROM aliases WHERE kind = 'entity' AND id = ?", ids)
        run("UPDATE entities SET name = NULL WHERE id = ?", ids)
    begin_revision(store, "erasure")


def resume_erasure(folder: GraphFolder) -> None:
    """Finishes an erasure, if there is one: rewrites the releases, then compacts the store."""
    store = folder.store
    found = store.connection.execute("SELECT value FROM meta WHERE key = 'erasing'").fetchone()
    if found is None:
        return
    try:
        plan = json.loads(found[0])
        names = [str(name) for name in plan["names"]]
        rows = {
            table: (torch.tensor(index, dtype=torch.int64), torch.tensor(values))
            for table, (index, values) in plan["rows"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraphFolderError(f"'{store.path}' is damaged: it has no plan of the erasure ({error!r})") from None
    shutil.rmtree(folder.path / "releases" / "rejected", ignore_errors=True)
    (folder.path / "history.html").unlink(missing_ok=True)  # it names entities; `report` writes it again
    for number in folder.releases.numbers():
        _rewrite_release(folder.releases, number, rows, names)
    with store.transaction() as connection:
        for number, metrics in connection.execute("SELECT number, metrics FROM releases").fetchall():
            text = json.dumps(_cleared(json.loads(metrics), names))
            connection.execute("UPDATE releases SET metrics = ? WHERE number = ?", (text, number))
        # From here on only the compaction is left to do, and the names are no longer needed.
        set_value(store, "erasing", json.dumps({"rows": {}, "names": []}))
    _compact(store)
    store.connection.execute("DELETE FROM meta WHERE key = 'erasing'")
    folder.releases.clean(set(folder.releases.numbers()))


def _compact(store: FactStore) -> None:
    # VACUUM rewrites all pages. The log before it may hold old ones: it is emptied before and after.
    for _ in range(2):
        store.connection.execute("VACUUM")
        busy, *_ = store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise GraphFolderError(f"'{store.path}' is being read; close its readers and finish the erasure")


def _rewrite_release(releases: ReleaseFolder, number: int, rows: Rows, names: Sequence[str]) -> None:
    place, release = releases.folder(number), releases.manifest(number)
    parts = read_parts(place, release)
    files = release.files
    changed = [_set_rows(parts, table, index, values) for table, (index, values) in rows.items()]
    if any(changed):
        name = f"tables-{secrets.token_hex(4)}.safetensors"
        files = {name: write_tensors(place / name, parts)}
    metrics, calibration = _cleared(release.metrics, names), _cleared(release.calibration, names)
    new = replace(release, files=files, metrics=metrics, calibration=calibration)
    if new != release:
        new.write(place)  # the moment at which the release is the new one
    for old in set(release.files) - set(files):
        os.unlink(place / old)


def _set_rows(parts: dict[str, Tensor], table: str, index: Tensor, values: Tensor) -> bool:
    """Sets rows of a table in the tensors of one file, which may hold all of it, some rows or none."""
    if table in parts:
        there = index < len(parts[table])
        parts[table][index[there]] = values[there].to(parts[table].dtype)
        return bool(there.any())
    held = parts.get(f"{table}.index")
    if held is None:
        return False
    where, which = (held[:, None] == index).nonzero(as_tuple=True)
    rows = parts[f"{table}.rows"]
    rows[where] = values[which].to(rows.dtype)
    return bool(len(where))


def _cleared(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        return ERASED if any(name in value for name in names) else value
    if isinstance(value, dict):
        return {_cleared(key, names): _cleared(item, names) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleared(item, names) for item in value]
    return value


def audit_bytes(folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Files of a folder in which a name occurs, in any byte: in UTF-8, UTF-16, or escaped as in JSON and HTML. Very
    short names may occur by chance."""
    if not name:
        raise ValueError("name must not be empty")
    escaped = json.dumps(name)[1:-1]
    texts = {name, escaped, html.escape(name), json.dumps(name, ensure_ascii=False)[1:-1]}
    texts.add(re.sub(r"\\u[0-9a-f]{4}", lambda code: "\\u" + code[0][2:].upper(), escaped))
    patterns = {text.encode() for text in texts} | {name.encode("utf-16-le"), name.encode("utf-16-be")}
    overlap = max(map(len, patterns)) - 1
    return [path for path in sorted(Path(folder).rglob("*")) if _occurs(path, patterns, overlap)]


def _occurs(path: Path, patterns: set[bytes], overlap: int) -> bool:
    if any(pattern in os.fsencode(path.name) for pattern in patterns):
        return True
    if path.is_symlink() or not path.is_file():
        return False
    rest = b""
    with open(path, "rb") as file:
        while part := file.read(CHUNK):
            data = rest + part
            if any(pattern in data for pattern in patterns):
                return True
            rest = data[-overlap:] if overlap else b""
    return False
