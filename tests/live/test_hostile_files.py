"""Files of a graph with wrong contents behind valid checksums: every command ends with one line, never a traceback."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.live import GraphFolderError
from tkg_incremental.live.manifest import MANIFEST, _checksum

Manifest = dict[str, Any]


def commands(path: Path) -> list[list[str]]:
    """All commands that read or write a graph."""
    changes = path.parent / "changes.csv"
    changes.write_text("op,head,rel,tail,at\nend,leader 0,leads,R&D,101\nadd,leader 1,leads,R&D,101\n")
    fact = ["leader 0", "leads", "R&D"]
    asked = [["query", str(path), "?", *fact[1:]], ["check", str(path), *fact], ["timeline", str(path), *fact]]
    asked += [["history", str(path)], ["report", str(path)], ["update", str(path), str(changes)]]
    return [*asked, ["rollback", str(path), "0"], ["erase", str(path), "person 5", "--yes"]]


def failures(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Commands that fail, with what they say. An exception other than the expected ones fails the test."""
    found = {}
    for command in commands(path):
        code = main(command)
        said = capsys.readouterr().err
        if code:
            assert code == 3, (command[0], said)
            assert f"tkg-incremental {command[0]}: error: " in said or "  line 2: it never held" in said, said
            found[command[0]] = said
    return found


STATEMENTS = [
    "DROP TABLE facts",
    "DROP TABLE meta",
    "DELETE FROM meta",
    "DROP TABLE releases",
    "ALTER TABLE facts RENAME COLUMN since TO sinse",
    "CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM facts; END",
    "UPDATE meta SET value = 'x' WHERE key = 'clock'",
    "UPDATE meta SET value = 99999999 WHERE key = 'clock'",
    "UPDATE meta SET value = 'x' WHERE key = 'release'",
    "UPDATE meta SET value = 'day' WHERE key = 'unit'",
    "UPDATE meta SET value = 'x' WHERE key = 'first'",
    "UPDATE facts SET valid_from = 'abc'",
    "UPDATE facts SET valid_to = '9999999999999999999999'",
    "UPDATE facts SET head = x'00ff'",
    "UPDATE releases SET metrics = '[1]'",
    "UPDATE releases SET metrics = '{'",
    "UPDATE releases SET created = 'x'",
    "UPDATE releases SET created = 9000000000000000000",
    "UPDATE revisions SET recorded_at = 'x'",
    "INSERT INTO meta VALUES ('erasing', '[]')",
    "INSERT INTO meta VALUES ('erasing', '{')",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_fact_stores(path: Path, capsys: pytest.CaptureFixture[str], statement: str) -> None:
    connection = sqlite3.connect(path / "facts.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert failures(path, capsys)


def test_metrics_of_other_types_are_not_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connection = sqlite3.connect(path / "facts.db")
    connection.execute("""UPDATE releases SET metrics = '{"kept": "x", "learned": 0.5}'""")
    connection.commit()
    connection.close()
    assert main(["history", str(path)]) == 0
    assert "0.50" in capsys.readouterr().out


def test_a_damaged_clock_is_not_learnt(path: Path) -> None:
    connection = sqlite3.connect(path / "facts.db")
    connection.execute("UPDATE meta SET value = 103 WHERE key = 'clock'")
    connection.commit()
    connection.close()
    with LiveGraph(path) as graph:
        assert graph.query(None, "leads", "R&D")[0].name == "leader 0"
        with pytest.raises(GraphFolderError, match="its last step is 103, that of release 0 is 100"):
            graph.update(added=[("a", "leads", "R&D")])


def change_manifest(path: Path, change: Callable[[Manifest], Any]) -> None:
    file = path / "releases" / "0000" / MANIFEST
    about = json.loads(file.read_bytes())
    del about["sha256"]
    change(about)
    about["sha256"] = _checksum(about)
    file.write_text(json.dumps(about))


@pytest.mark.parametrize("value", [None, "x", [1], 10**30, 1.5], ids=str)
def test_manifests_of_other_types(path: Path, capsys: pytest.CaptureFixture[str], value: Any) -> None:
    about = json.loads((path / "releases" / "0000" / MANIFEST).read_bytes())
    allowed = {("parent", "None"), ("updates", "[1]")}
    for name in about.keys() - {"sha256"}:
        if (name, str(value)) not in allowed:
            shutil.copyfile(path / "releases" / "0000" / MANIFEST, path.parent / "whole")
            change_manifest(path, lambda manifest, name=name: manifest.update({name: value}))  # type: ignore[misc]
            assert main(["query", str(path), "?", "leads", "R&D"]) == 3, name
            assert f"error: cannot load '{path / 'releases' / '0000'}" in capsys.readouterr().err
            shutil.copyfile(path.parent / "whole", path / "releases" / "0000" / MANIFEST)


PARTS: dict[str, Callable[[Manifest], Any]] = {
    "a file outside": lambda m: m["files"].update({"../../graph.toml": m["files"].popitem()[1]}),
    "a file without a size": lambda m: m["files"].update({name: {} for name in m["files"]}),
    "a file of a number": lambda m: m["files"].update(dict.fromkeys(m["files"], 5)),
    "a table of a number": lambda m: m["tables"].update(dict.fromkeys(m["tables"], 5)),
    "a table without a shape": lambda m: m["tables"]["entity_vectors"].pop("shape"),
    "a negative shape": lambda m: m["tables"]["entity_vectors"].update(shape=[-1, 2]),
    "an unknown dtype": lambda m: m["tables"]["entity_vectors"].update(dtype="F99"),
    "a table that is not there": lambda m: m["tables"].update(more={"dtype": "F32", "shape": [10**15]}),
    "updates of text": lambda m: m.update(updates=["a"]),
    "a calibration of something else": lambda m: m.update(calibration={"slope": "x"}),
    "no clock": lambda m: m.pop("clock"),
}


@pytest.mark.parametrize("what", PARTS)
def test_manifests_with_wrong_parts(path: Path, capsys: pytest.CaptureFixture[str], what: str) -> None:
    change_manifest(path, PARTS[what])
    assert {"query", "check", "timeline", "update"} <= failures(path, capsys).keys()


@pytest.mark.parametrize("text", [b"", b"0000", b"9999\n", b"-001\n", b"\0" * 5, b"0000" + b"0" * 30 + b"\n"])
def test_pointers(path: Path, capsys: pytest.CaptureFixture[str], text: bytes) -> None:
    (path / "current").write_bytes(text)
    assert "query" in failures(path, capsys)


def test_folders_that_lack_parts(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path / "current").unlink()
    (path / "current").mkdir()
    assert "query" in failures(path, capsys)
    shutil.rmtree(path / "current")
    shutil.rmtree(path / "releases")
    assert "query" in failures(path, capsys)
