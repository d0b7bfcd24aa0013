"""Own facts are learnt, and ``train`` says how many rank first."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "live"))

from company import Company

from tkg_incremental.cli import main
from tkg_incremental.cli.options import OWN_FACTS, RunOptions
from tkg_incremental.cli.outcome import print_result
from tkg_incremental.training import Result


@pytest.mark.slow
def test_a_company_is_learnt_with_default_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Company(people=146).export(tmp_path / "company.csv")  # 380 facts
    assert main(["train", "--facts", str(tmp_path / "company.csv"), "--run-dir", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    share = Result.load(tmp_path / "run" / "metrics.json").known_ranked_first
    assert share >= 0.95
    assert f"facts given that rank first: {share:.0%}" in said.out
    assert "warning" not in said.err


def test_everything_is_learnt_by_default(facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--hidden-channels", "32", "--base-epochs", "10", "--epochs", "3"]
    command = ["train", "--facts", str(facts), *flags, "--run-dir", str(tmp_path / "run")]
    assert main(command) == 0
    said = capsys.readouterr()
    result = Result.load(tmp_path / "run" / "metrics.json")
    assert result.known_ranked_first >= 0.95
    assert [step["epochs"] for step in result.steps] == [3] * 8  # no early stopping
    assert "30 / 0 / 0 facts" in said.err
    assert "unit of time: year: the finest unit of the dates; 24 steps" in said.err
    assert "No facts were withheld, so there are no metrics: --holdout 0.1 withholds a tenth." in said.out
    assert f"facts given that rank first: {result.known_ranked_first:.0%}" in said.out
    assert "C@10" not in said.out + said.err
    assert main([*command, "--holdout", "0.1", "--overwrite"]) == 0
    said = capsys.readouterr()
    assert "withheld: 2 facts for validation and 2 for test; they are not learnt" in said.err
    assert "C@10" in said.out


def test_a_model_that_does_not_know_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    result = Result("Own", "DE", "FT", 0, 4)
    for share, own_facts, warns in ((0.6, True, True), (0.6, False, False), (0.98, True, False)):
        result.known_ranked_first = share
        print_result(result, own_facts)
        said = capsys.readouterr()
        assert f"facts given that rank first: {share:.0%}" in said.out
        assert ("warning: 40% of the facts given do not rank first" in said.err) == warns
    result.known_ranked_first = math.nan
    print_result(result, True)
    assert "rank first" not in capsys.readouterr().out


def test_defaults_of_own_facts() -> None:
    own = RunOptions.of({"facts": "my.csv"})
    assert {name: getattr(own, name) for name in OWN_FACTS} == OWN_FACTS
    assert (own.patience, own.candidates, own.holdout) == (0, "last", 0.0)
    given = {"facts": "my.csv", "model": "DE", "patience": 4, "candidates": "own"}
    assert RunOptions.of(given) == RunOptions(**given)  # a model that is asked for has its own defaults
    assert RunOptions.of({"dataset": "YAGO11k"}) == RunOptions(dataset="YAGO11k")
