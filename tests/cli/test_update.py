"""Changes and full exports as a database writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tkg_incremental.cli import main

HEADER = "PERSON;ROLE;TEAM;VALID_FROM;VALID_TO;CHANGED_BY\r\n"
ROWS = (
    '"Lee, ""Bo""";leads;"R&D; IT";05/01/2024 00:00:00;NULL;dba\r\n'
    '"Kim";works in;"R&D; IT";06/01/2024 00:00:00;NULL;dba\r\n'
)
READING = ["--columns", "head=PERSON,rel=ROLE,tail=TEAM", "--dayfirst"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("update")
    export = folder / "export.csv"
    export.write_text(HEADER + ROWS, encoding="utf-8-sig")
    create = ["create", str(folder / "graph"), "--facts", str(export), *READING]
    assert main([*create, "--epochs", "1", "--hidden-channels", "8"]) == 0
    return folder / "graph"


def test_a_full_export_is_read_as_the_first_one(
    graph: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    export = graph.parent / "later.csv"
    export.write_text(HEADER + ROWS + '"Zoe";leads;Sales;07/01/2024 00:00:00;NULL;dba\r\n', encoding="utf-8-sig")
    assert main(["update", str(graph), "--full", str(export), "--dry-run", *READING]) == 0
    assert capsys.readouterr().out.startswith("1 added · the changes are valid")
    assert "columns that are not read: 'CHANGED_BY'" in caplog.text


def test_a_full_export_that_cannot_be_read(graph: Path, fails: Callable[..., str]) -> None:
    said = fails(3, "update", graph, "--full", graph.parent / "export.csv")
    assert "export.csv, line 1: expected" in said
    assert "--columns head=…" in said


def test_flags_about_a_full_export_need_one(graph: Path, fails: Callable[..., str]) -> None:
    assert "--dayfirst goes with --full" in fails(2, "update", graph, "--dayfirst")
