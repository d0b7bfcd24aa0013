"""Questions to a run folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tkg_incremental.answers import Answer
from tkg_incremental.cli import main
from tkg_incremental.cli.query import answer_table
from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models import HyTE, load_model, save_model

Fails = Callable[..., str]


def ask(run_dir: Path, *rest: str) -> list[str]:
    return ["query", str(run_dir), "?", "leads", "Aland", *rest]


def test_answers_are_those_of_the_model(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(ask(runs["tie-0"], "--at", "2021", "-k", "3")) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = load_model(runs["tie-0"] / "model.pt").query(None, "leads", "Aland", "2021", k=3)
    assert lines[0] == "? · leads · Aland at 2021"
    assert lines[1].split() == ["answer", "probability", "known"]
    assert [line.split()[0] for line in lines[3:]] == ["1", "2", "3"]
    for line, answer in zip(lines[3:], expected, strict=True):
        assert answer.name in line


def test_several_times(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(ask(runs["tie-0"], "--at", "2000", "--at", "2023-05-01", "-k", "4")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[7] == "? · leads · Aland at 2023-05-01 (2023)"
    model = load_model(runs["tie-0"] / "model.pt")
    for first, year in ((3, "2000"), (10, "2023")):
        answers = model.query(None, "leads", "Aland", year, k=4)
        assert all(answer.name in line for line, answer in zip(lines[first:], answers, strict=False))
    assert len(lines) == 14


def test_the_last_step_is_asked_about_by_default(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(ask(runs["tie-0"])) == 0
    assert capsys.readouterr().out.startswith("? · leads · Aland at 2023\n")


def test_columns_without_a_value_are_left_out() -> None:
    known, guessed = Answer("Ann", None, 2.0, ("2001", None)), Answer("Bo", None, 1.0, None)
    assert answer_table([known, guessed]).splitlines()[0].split() == ["answer", "known"]
    assert answer_table([guessed]).splitlines()[0].split() == ["answer"]
    assert answer_table([]) == "no answers"


def test_json_and_the_other_side(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert (
        main(["query", str(runs["tie-0"]), "leader 0 of Aland", "leads", "?", "--at", "2001", "-k", "2", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    expected = load_model(runs["tie-0"] / "model.pt").query("leader 0 of Aland", "leads", None, "2001", k=2)
    assert found == json.loads(json.dumps({"2001": [answer.to_dict() for answer in expected]}))


def test_model_file_is_all_it_needs(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(runs["tie-0"] / "model.pt", tmp_path)
    capsys.readouterr()
    assert main(ask(tmp_path, "--at", "2021")) == 0
    moved = capsys.readouterr().out
    assert main(ask(runs["tie-0"], "--at", "2021")) == 0
    assert capsys.readouterr().out == moved


def test_names_and_times_that_are_not_there(runs: dict[str, Path], fails: Fails) -> None:
    run = runs["tie-0"]
    assert main(["query", str(run), "?", "leads", "aland", "--at", "2021"]) == 0  # in any case of letters
    said = fails(3, "query", run, "?", "leads", "Alamd", "--at", "2021")
    assert "no entity is called 'Alamd'; the nearest are 'Aland'" in said
    assert "no relation is called 'lead'; the nearest are 'leads'" in fails(
        3, "query", run, "?", "lead", "Aland", "--at", "2021"
    )
    assert "time must lie in 2000 … 2023 (got '1850')" in fails(3, *ask(run, "--at", "1850"))
    assert "expected a year or a date" in fails(3, *ask(run, "--at", "yesterday"))


def test_bad_questions(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    run = runs["tie-0"]
    for head, rel, tail in (("?", "leads", "?"), ("leader 0 of Aland", "leads", "Aland"), ("?", "?", "Aland")):
        assert 'exactly one of HEAD, REL and TAIL must be "?"' in fails(
            2, "query", run, head, rel, tail, "--at", "2021"
        )
    assert "at least 1 (got '0')" in fails(2, *ask(run, "--at", "2021", "-k", "0"))
    assert "there is no run folder" in fails(3, *ask(tmp_path / "none", "--at", "2021"))
    assert "has no model.pt" in fails(3, *ask(tmp_path, "--at", "2021"))


def test_damaged_model(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    content = (runs["tie-0"] / "model.pt").read_bytes()
    (tmp_path / "model.pt").write_bytes(content[:-1])
    assert "cannot load" in fails(3, *ask(tmp_path, "--at", "2021"))


def test_control_characters_of_names_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["plain", "\x1b[31mred", "a\rb\x00", "\u202eright to left", "\x9b2J"]
    model = HyTE(len(names), 1, 2, hidden_channels=4)
    axis = TimeAxis.from_instants([1990, 1991])
    facts = torch.tensor([[0, 0, tail, 0, 1] for tail in range(len(names))], dtype=torch.int32)
    first_seen = torch.zeros(len(names), dtype=torch.long)
    model.catalog = Catalog(Vocabulary(names), Vocabulary(["knows"]), axis, first_seen, facts)
    save_model(model, tmp_path / "model.pt")
    for given in names:
        assert main(["query", str(tmp_path), given, "knows", "?", "--at", "1990"]) == 0
        said = capsys.readouterr().out
        assert said.replace("\n", "").isprintable()
        assert "\\x1b[31mred" in said
    assert main(["query", str(tmp_path), "\x1b[31mreed", "knows", "?", "--at", "1990"]) == 3
    assert capsys.readouterr().err.replace("\n", "").isprintable()
