"""Mistakes of a user: a code that scripts can rely on, one line, no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tkg_incremental import __version__
from tkg_incremental.cli import COMMANDS, main
from tkg_incremental.cli.options import OPTIONS, RunOptions
from tkg_incremental.datasets import DataError, SyntheticTKG, WorldLeaders
from tkg_incremental.registry import MODELS, make_model

Fails = Callable[..., str]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--epochs", "0"], "--epochs: expected a whole number of at least 1 (got '0')"),
        (["--lr", "fast"], "--lr: invalid float value: 'fast'"),
        (["--lr", "-1"], "lr must be above 0 (got -1.0)"),
        (["--negatives", "some"], "expected a whole number of at least 1 (got 'some')"),
        (["--model", "TransX"], "--model: expected one of DE, HyTE, Static, TComplEx, "),
        (["--strategy", "magic"], "--strategy: expected one of ft, tr, tie, "),
        (["--model", "HyTE", "--decoder", "complex"], "--decoder has no effect with HyTE (got 'complex')"),
        (["--model", "Static", "--max-frequency", "0.5"], "--max-frequency has no effect with Static (got 0.5)"),
        (["--max-frequency", "0"], "max_frequency must lie in (0, π] (got 0.0)"),
        (["--hidden-channels", "7"], "hidden_channels must be even and at least 2 with ComplEx (got 7)"),
        (["--device", "gpu"], "--device: expected auto, cpu, cuda or mps (got 'gpu')"),
        (["--device", "mps"], "torch finds no mps device here"),
        (["--dataset", "WorldLeaders"], "give either --dataset or --facts, and not both"),
        (["--epoch", "1"], "unrecognized arguments: --epoch 1; did you mean --epochs"),
        (["--strategy", "tiee"], "(got 'tiee'; did you mean tie?)"),
        (["--dataset", "wikidata12"], "(got 'wikidata12'; did you mean Wikidata12k?)"),
        (
            ["--strategy", "agem"],
            "--negatives has no effect with agem (got 5); it goes with ft, tr, tie, fb",
        ),
        (["--strategy", "supersede", "--learn-from", "all"], "--learn-from has no effect with supersede (got 'all')"),
        (["--accumulator", "1"], "--accumulator goes with --optimizer adagrad (got 1.0)"),
        (["--model", "DE", "--smoothness", "1"], "--smoothness has no effect with DE (got 1.0); it goes with HyTE,"),
        (["--strategy", "ft", "--replay-size", "9"], "--replay-size has no effect with ft (got 9)"),
        (["--strategy", "fb", "--regularization", "1"], "--regularization has no effect with fb (got 1.0)"),
        (["--protocol", "joint"], "--epochs has no effect with joint (got 2); --base-epochs has"),
        (["--weight-decay", "-1"], "--weight-decay: expected a number of at least 0 (got '-1')"),
        (["--regularization", "-1"], "--regularization: expected a number of at least 0"),
        (["--replay-weight", "nan"], "--replay-weight: expected a number of at least 0 (got 'nan')"),
        (["--model", "HyTE", "--hidden-channels", "1"], "hidden_channels must be at least 2 (got 1)"),
        (["--replay-size", "1000000000000", "--replay", "frequency"], "--replay-size 1000000000000 needs about"),
        (["--seed", "-1"], "--seed: expected a whole number from 0 to 2^63 - 1 (got '-1')"),
        (["--seed", "9223372036854775808"], "--seed: expected a whole number from 0 to 2^63 - 1"),
        (["--test", "x.tsv", "--holdout", "0.5"], "--holdout has no effect with --val or --test (got 0.5)"),
    ],
)
def test_bad_usage_of_train(quick: list[str], tmp_path: Path, fails: Fails, flags: list[str], said: str) -> None:
    if flags[1] == "mps" and pytest.importorskip("torch").backends.mps.is_available():
        pytest.skip("there is an mps device here")
    assert said in fails(2, *quick, *flags, "--run-dir", tmp_path / "run")
    assert not (tmp_path / "run").exists()  # so that the next try needs no --overwrite


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb\n", "line 1"),
        ("a\tb\tc\tsoon\n", "line 1"),
        ("", "expected"),
    ],
)
def test_bad_facts(tmp_path: Path, fails: Fails, text: str, said: str) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(text)
    found = fails(3, "train", "--facts", path, "--run-dir", tmp_path / "run")
    assert str(path) in found
    assert said in found
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", MODELS)
def test_smoothness_goes_with_models_that_have_a_vector_per_step(name: str) -> None:
    dataset = SyntheticTKG(num_entities=20, num_steps=4) if name != "CalendarDE" else WorldLeaders()
    axes = make_model(name, dataset, hidden_channels=8).axes.values()
    assert RunOptions(model=name).uses("smoothness") == ("time" in axes)


@pytest.mark.parametrize("name", [name for name, each in OPTIONS.items() if each.metadata["needs"] == "facts"])
def test_options_of_own_facts_need_a_file(fails: Fails, name: str) -> None:
    values = {
        "holdout": "0.1",
        "unit": "day",
        "threshold": "3",
        "columns": "head=Who",
        "dayfirst": [],
        "keep_outliers": [],
    }
    value = values.get(name, "x")
    flag = f"--{name.replace('_', '-')}"
    assert f"{flag} goes with --facts" in fails(2, "train", flag, *([value] if isinstance(value, str) else value))


def test_missing_files(tmp_path: Path, fails: Fails) -> None:
    assert "there is no" in fails(3, "train", "--facts", tmp_path / "none.tsv", "--run-dir", tmp_path / "run")
    assert "none.toml" in fails(3, "train", "--config", tmp_path / "none.toml")
    assert "goes with --facts" in fails(2, "train", "--val", tmp_path / "val.tsv")


def test_download_that_fails(tmp_path: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TKG_INCREMENTAL_MIRROR", str(tmp_path / "empty mirror"))
    flags = ["--dataset", "yago11k", "--root", tmp_path / "data", "--run-dir", tmp_path / "run"]
    assert "train.txt" in fails(3, "train", *flags)


def test_diverging_training_fails_without_a_traceback(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--lr", "1e30", "--optimizer", "published", "--epochs", "9", "--run-dir", str(tmp_path / "run")]
    assert main([*quick, *flags]) == 1
    said = capsys.readouterr().err
    assert "a smaller learning rate may help" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("before", [True, False])
def test_debug_shows_where(tmp_path: Path, before: bool) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tb\n")
    command = ["train", "--facts", str(path), "--run-dir", str(tmp_path / "run")]
    with pytest.raises(DataError):
        main(["--debug", *command] if before else [*command, "--debug"])


def test_damaged_run_file(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    for text in ("{", '{"no such option": 1}', "[1]", "[" * 99_999):
        (tmp_path / "run.json").write_text(text)
        assert "is damaged or of another version" in fails(3, "train", "--resume", "--run-dir", tmp_path)


@pytest.mark.parametrize("name", ["metrics.json", "run.json", "changes.json"])
def test_damaged_files_of_a_run(runs: dict[str, Path], tmp_path: Path, fails: Fails, name: str) -> None:
    """Contents of other types, in a whole JSON file: one line that names the run."""
    run = shutil.copytree(runs["tie-0"], tmp_path / "run")
    state = json.loads((run / name).read_bytes())
    texts = ["", "{", "[1]", "null", "[" * 99_999]
    if name != "run.json":  # options of other types are refused by --resume, and shown by a report
        part = "steps" if name == "metrics.json" else "labels"
        texts += [json.dumps({**state, part: value}) for value in ("x", -1, [1], {"a": 1}) if part == "steps"]
        texts += [json.dumps({key: value for key, value in state.items() if key != part})]
        texts += [json.dumps({**state, part: []})] if part == "labels" else []
    for text in texts:
        (run / name).write_text(text)
        said = fails(3, "report", run)
        assert "is damaged or of another version" in said, text[:40]
        assert str(run) in said


# Help --------------------------------------------------------------------------------------------------


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    overview = capsys.readouterr().out
    assert "exit codes:" in overview
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        assert f"\n    {name} " in overview
        with pytest.raises(SystemExit) as exit_:
            main([name, "--help"])
        assert exit_.value.code == 0
        text = capsys.readouterr().out
        assert "examples:" in text
        assert max(map(len, text.splitlines())) <= 101  # the width of a code block in the documentation
        assert f"  tkg-incremental {name}" in text
        assert "--debug" not in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"tkg-incremental {__version__}\n"


def test_no_command_is_bad_usage(fails: Fails) -> None:
    assert "required: COMMAND" in fails(2)
    said = fails(2, "trian")
    assert "invalid choice: 'trian'" in said
    assert "did you mean train?" in said


def test_folders_of_the_other_kind(tmp_path: Path, fails: Fails) -> None:
    """Commands on runs say that a folder is a live graph, and those on facts that ``query`` takes a question."""
    (tmp_path / "graph.toml").touch()
    for command in (["export", tmp_path, "--to", tmp_path], ["evaluate", tmp_path], ["compare", tmp_path]):
        assert "is a live graph, and this command reads the folder of a run" in fails(3, *command)
    for name in ("check", "timeline"):
        assert 'query asks for a "?"' in fails(2, name, tmp_path, "Ann", "leads", "?")
    assert "train makes one, and create the folder of a live graph" in fails(3, "export", tmp_path / "no", "--to", ".")
