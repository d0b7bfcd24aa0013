"""The page of a live graph."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tkg_incremental.cli import main
from tkg_incremental.live.records import Change
from tkg_incremental.report.history import FIGURES, SHOWN, some_changes, write_history

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))
from small_live import make, succession


def test_changes_of_each_kind_are_listed() -> None:
    ended = [Change("end", f"person {number}", "leads", "R&D", 1) for number in range(30)]
    added = [Change("add", f"person {number}", "leads", "R&D", 1) for number in range(3)]
    assert some_changes(ended + added) == ended[: SHOWN - 3] + added
    assert some_changes(ended[:5] + added * 5) == ended[:5] + (added * 5)[: SHOWN - 5]
    assert some_changes(added) == added
    assert some_changes(ended) == ended[:SHOWN]


def test_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with make(tmp_path) as graph:
        graph.update(**succession(1))
        graph.update(added=[("<b>Eve</b>\x1b", "works in", "R&D")], retracted=[("person 2", "leads", "Sales")])
        page = write_history(graph).read_text()
        for title, _, _ in FIGURES.values():
            assert f'aria-label="{title}"' in page
        assert "<b>Eve" not in page
        assert "\x1b" not in page
        assert "&lt;b&gt;Eve&lt;/b&gt;" in page
        assert page.count("<details") == 3
        assert "Release 2, which answers" in page
        assert "Passed the gate: learned" in page
        assert not re.search(r"\bnan\b|None|src=|href=\"http", page)
        graph.update(added=[("Zoë", "works in", "R&D")])
        graph.rollback(1)
        page = write_history(graph).read_text()
        assert "Release 1, which answers" in page
    capsys.readouterr()
    assert main(["report", str(tmp_path / "graph")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "graph" / "history.html")


def test_erasure_removes_it(tmp_path: Path) -> None:
    with make(tmp_path) as graph:
        graph.update(**succession(1))
        path = write_history(graph)
        assert "leader 1" in path.read_text()
        assert graph.erase("leader 1") == []
        assert not path.exists()


def test_pending_changes_are_shown(tmp_path: Path) -> None:
    from small_live import OPEN_GATE, QUICK

    from tkg_incremental.live.gate import GateSettings

    gate = GateSettings(**{**vars(OPEN_GATE), "learned": 1.1})
    with make(tmp_path, QUICK, gate) as graph:
        assert graph.update(**succession(1)).state == "refused"
        assert "2 changes pending" in write_history(graph).read_text()
        assert graph.update(force=True).state == "released"
        assert "Released although the gate refused: learned" in write_history(graph).read_text()
