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


def test_planned_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]) -> None:
    facts = tmp_path / "facts.csv"
    facts.write_text("head,rel,tail,start,end\nACME,supplies,Oslo,2026-01-05,2027-12-31\n")
    create = ["create", str(tmp_path / "graph"), "--facts", str(facts), "--no-train"]
    assert main([*create, "--at", "2026-01-07"]) == 0
    assert capsys.readouterr().err.endswith("; the last step is 2026-01-07\n")
    run = ["create", str(tmp_path / "other"), "--from-run", str(tmp_path)]
    assert "--at goes with --facts" in fails(2, *run, "--at", "2026-01-07")


def test_a_full_export_is_read_as_the_first_one(
    graph: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    export = graph.parent / "later.csv"
    export.write_text(HEADER + ROWS + '"Zoe";leads;Sales;07/01/2024 00:00:00;NULL;dba\r\n', encoding="utf-8-sig")
    assert main(["update", str(graph), "--full", str(export), "--dry-run", *READING]) == 0
    assert capsys.readouterr().out.startswith("1 added · 2 new entities · the changes are valid")
    assert "columns that are not read: 'CHANGED_BY'" in caplog.text


def test_updates_read_their_files_as_create_did(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = graph.parent / "without_flags.csv"
    export.write_text(HEADER + ROWS + '"Zoe";leads;Sales;07/01/2024 00:00:00;NULL;dba\r\n', encoding="utf-8-sig")
    assert main(["update", str(graph), "--full", str(export), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("1 added · 2 new entities · the changes are valid")


def test_changes_have_the_columns_and_dates_of_the_first_file(
    graph: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    changes = graph.parent / "changes.csv"
    head = "Operation;Person;Role;Team;Valid_From;Changed_By\n"
    changes.write_text(head + 'add;Zoe;leads;Sales;03/02/2024;dba\nend;Kim;works in;"R&D; IT";;\n')
    assert main(["update", str(graph), str(changes), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("1 added · 1 ended · 2 new entities · the changes are valid")
    assert "columns that are not read: 'Changed_By'" in caplog.text
    changes.write_text("op,head,rel,tail,at\nadd,Zoe,leads,Sales,2024-02-03\n")  # the usual names stay valid
    assert main(["update", str(graph), str(changes), "--dry-run"]) == 0


def test_a_full_export_that_cannot_be_read(graph: Path, fails: Callable[..., str]) -> None:
    other = graph.parent / "other.csv"
    other.write_text("worker;role;team;valid_from\nKim;leads;Sales;01/02/2024\n")
    said = fails(3, "update", graph, "--full", other)
    assert "other.csv, line 1: expected a column 'PERSON' for head" in said
    changes = graph.parent / "other_changes.csv"
    changes.write_text("op;worker;role;team;at\nadd;Kim;leads;Sales;01/02/2024\n")
    said = fails(3, "update", graph, changes)
    assert "expected a column head. Name them with" in said
    assert "--columns head=…" in said
    assert main(["update", str(graph), str(changes), "--dry-run", "--columns", "head=worker,rel=role,tail=team"]) == 0


def test_flags_about_files_need_one(graph: Path, fails: Callable[..., str]) -> None:
    assert "--dayfirst goes with CHANGES or --full" in fails(2, "update", graph, "--dayfirst")


def test_a_missing_file_of_changes(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = graph.parent / "missing.csv"
    assert main(["update", str(graph), str(missing)]) == 3
    assert capsys.readouterr().err.endswith(f"error: '{missing}': No such file or directory\n")


def test_dates_of_the_command_line_are_read_as_those_of_the_files(
    graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = graph.parent / "undated.csv"
    changes.write_text("op,head,rel,tail\nadd,Zoe,leads,Sales\n")
    assert main(["update", str(graph), str(changes), "--at", "08/01/2024", "--dry-run"]) == 0
    assert main(["query", str(graph), "Kim", "works in", "?", "--at", "06/01/2024"]) == 0
    assert "since 2024-01-06" in capsys.readouterr().out
    assert main(["check", str(graph), "Kim", "works in", "R&D; IT", "--at", "05/01/2024"]) == 0
    assert "not known" in capsys.readouterr().out
