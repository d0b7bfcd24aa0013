"""The page of a run, from the command line."""

from __future__ import annotations

import shutil
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from tkg_incremental.cli import main

Fails = Callable[..., str]


def test_training_writes_a_report_and_it_can_be_written_again(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["tie-0"], tmp_path / "run")
    page = tmp_path / "run" / "report.html"
    before = page.read_text(encoding="utf-8")
    page.unlink()
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert page.read_text(encoding="utf-8") == before
    assert "TIE with DE on my facts.tsv" in before
    for text in ("<h2>Settings</h2>", "tkg_incremental 0.1.0", "begun 20", "hidden channels"):
        assert text in before


def test_open(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["ft-0"], tmp_path / "my run")
    opened: list[str] = []

    class Browser(webbrowser.BaseBrowser):
        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            opened.append(url)
            return len(opened) == 1

    webbrowser.register("recorder", None, Browser(), preferred=True)
    monkeypatch.setattr(webbrowser, "_tryorder", ["recorder"])
    assert main(["report", str(tmp_path / "my run"), "--open"]) == 0
    assert opened == [(tmp_path / "my run" / "report.html").as_uri()]
    capsys.readouterr()
    assert main(["report", str(tmp_path / "my run"), "--open"]) == 0  # this browser opens one page only
    assert "no browser found" in capsys.readouterr().err


def test_errors(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    assert "there is no run folder" in fails(3, "report", tmp_path / "none")
    assert "has no metrics.json" in fails(3, "report", tmp_path)
    shutil.copytree(runs["ft-0"], tmp_path / "run")
    (tmp_path / "run" / "changes.json").write_text("{}")
    assert "is damaged or of another version" in fails(3, "report", tmp_path / "run")
