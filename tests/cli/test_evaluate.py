"""The metrics of a saved model, computed anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tkg_incremental.cli import main
from tkg_incremental.datasets import TabularTKG
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import load_model
from tkg_incremental.training import Result

Fails = Callable[..., str]


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, float]:
    capsys.readouterr()
    assert main(["evaluate", *map(str, arguments), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("name", ["tie-0", "ft-0"])
def test_finds_what_training_found(runs: dict[str, Path], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluate(capsys, runs[name])
    last = Result.load(runs[name] / "metrics.json").steps[-1]
    assert found.pop("split") == "test"
    assert found.pop("exclude_ended") is False
    assert found["label"] == "2023"
    assert found == {key: last[key] for key in found}


def test_ended_facts_are_excluded_as_in_training(
    quick: list[str], tmp_path: Path, fails: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*quick, "--exclude-ended", "--run-dir", str(tmp_path / "run")]) == 0
    assert "ended facts excluded" in capsys.readouterr().out
    found = evaluate(capsys, tmp_path / "run")
    last = Result.load(tmp_path / "run" / "metrics.json").steps[-1]
    assert found["exclude_ended"] is True
    names = ("C@10", "DF@10", "RRD", "MRR", "raw MRR", "A@10")
    assert [found[name] for name in names] == [last[name] for name in names]
    ranked = evaluate(capsys, tmp_path / "run", "--no-exclude-ended")
    assert ranked["exclude_ended"] is False
    assert ranked["RRD"] < found["RRD"]
    # A run is not continued with the other reading.
    (tmp_path / "run" / "run.json").write_text(
        (tmp_path / "run" / "run.json").read_text().replace('"exclude_ended": true', '"exclude_ended": false')
    )
    said = fails(3, "train", "--resume", "--run-dir", tmp_path / "run")
    assert "belongs to another run" in said


def test_other_split_and_step(runs: dict[str, Path], facts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluate(capsys, runs["tie-0"], "--split", "val", "--at", "2010", "--window", "5", "--per-query")
    model, line = load_model(runs["tie-0"] / "model.pt"), TabularTKG(facts, holdout=0.1).timeline
    expected, _ = Evaluator(line, "val", window=5, per_query=True).evaluate(model, 10)
    assert found == {
        "time": 10,
        "label": "2010",
        "split": "val",
        "exclude_ended": False,
        **{name: value if value == value else None for name, value in expected.items()},
    }


def test_run_stopped_half_way_is_asked_about_its_last_step(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["tie-0"], tmp_path / "run")
    result = Result.load(runs["tie-0"] / "metrics.json")
    del result.steps[3:]
    result.alpha = {step["time"]: result.alpha[step["time"]] for step in result.steps}
    result.save(tmp_path / "run" / "metrics.json")
    assert evaluate(capsys, tmp_path / "run")["label"] == "2018"


def test_table(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", str(runs["tie-0"])]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "DE · TabularTKG · test facts · 2023"
    assert lines[1].split() == ["metric", "value"]
    assert [line.split()[0] for line in lines[3:7]] == ["C@10", "DF@10", "RRD", "A@10"]


def test_facts_with_other_names_are_refused(
    runs: dict[str, Path], facts: Path, tmp_path: Path, fails: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more.tsv").write_text(facts.read_text() + "Nobody\tleads\tNowhere\t2000\t2023\n")
    said = fails(3, "evaluate", runs["tie-0"], "--facts", tmp_path / "more.tsv")
    assert "the entities of TabularTKG" in said
    assert "are not those the model" in said
    (tmp_path / "longer.tsv").write_text(facts.read_text().replace("\t2023\n", "\t2024\n"))
    assert "the steps of TabularTKG" in fails(3, "evaluate", runs["tie-0"], "--facts", tmp_path / "longer.tsv")
    # The same facts from another file will do.
    shutil.copy(facts, tmp_path / "same.tsv")
    same = ("--facts", tmp_path / "same.tsv", "--holdout", "0.1")
    assert evaluate(capsys, runs["tie-0"], *same) == evaluate(capsys, runs["tie-0"])
    assert "there are no test facts to evaluate on" in fails(3, "evaluate", runs["tie-0"], *same[:2])


def test_errors(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    assert "there is no run folder" in fails(3, "evaluate", tmp_path / "none")
    assert "expected one of test, val (got 'train')" in fails(2, "evaluate", runs["tie-0"], "--split", "train")
    assert "time must lie in" in fails(3, "evaluate", runs["tie-0"], "--at", "1900")
    (tmp_path / "run").mkdir()
    shutil.copy(runs["tie-0"] / "model.pt", tmp_path / "run")
    assert "no run.json" in fails(3, "evaluate", tmp_path / "run")  # which facts were they?
