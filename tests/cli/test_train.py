"""Training from flags and files, into folders that are empty or not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tkg_incremental.cli import main, make_parser
from tkg_incremental.cli.options import OPTIONS, RunOptions
from tkg_incremental.cli.progress import StepLines
from tkg_incremental.cli.run import make_trainer
from tkg_incremental.cli.train import merge
from tkg_incremental.datasets import SyntheticTKG, WorldLeaders
from tkg_incremental.registry import MODELS, STRATEGIES
from tkg_incremental.strategies import TIE, Deleted, ReplayOptions, UnlikelihoodLoss
from tkg_incremental.training import LearningSettings, Result

Fails = Callable[..., str]

CONFIGS = Path(__file__).parents[2] / "configs"


def metrics(run_dir: Path) -> dict[str, object]:
    """All that a run found, apart from how long it took."""
    found = json.loads((run_dir / "metrics.json").read_text())
    for record in [found["summary"], *found["steps"]]:
        del record["epoch_seconds"]
    return dict(found)


def test_what_a_run_leaves_and_says(
    quick: list[str], tmp_path: Path, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*quick, "--run-dir", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert "TIE · DE · TabularTKG · seed 0 · 8 steps" in said.out
    assert "TabularTKG(24 steps 2000 … 2023, 35 entities, 1 relations" in said.err
    assert "2023: C@10" in said.err  # a line for each step where there is no terminal
    for name in ("config.json", "run.json", "metrics.json", "model.pt", "changes.json"):
        assert (tmp_path / "run" / name).is_file()
    assert metrics(tmp_path / "run") == metrics(runs["tie-0"])  # the same flags, the same run
    assert metrics(tmp_path / "run") != metrics(runs["tie-1"])


def test_default_folder_names_the_run(
    quick: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*quick, "--model", "hyte", "--strategy", "FT", "--seed", "3"]) == 0
    run_dir = tmp_path / "runs" / "my facts-HyTE-ft-3"
    result = Result.load(run_dir / "metrics.json")
    assert (result.model, result.strategy, result.seed) == ("HyTE", "FT", 3)
    assert "holds an earlier run" in fails(3, *quick, "--model", "hyte", "--strategy", "FT", "--seed", "3")


def test_earlier_run_is_kept_unless_told_otherwise(quick: list[str], tmp_path: Path, fails: Fails) -> None:
    run_dir = tmp_path / "run"
    assert main([*quick, "--run-dir", str(run_dir)]) == 0
    before = (run_dir / "metrics.json").read_bytes()
    said = fails(3, *quick, "--seed", "1", "--run-dir", run_dir)
    assert f"'{run_dir}' holds an earlier run: --resume continues it, --overwrite replaces it" in said
    assert (run_dir / "metrics.json").read_bytes() == before
    assert main([*quick, "--seed", "1", "--run-dir", str(run_dir), "--overwrite"]) == 0
    assert Result.load(run_dir / "metrics.json").seed == 1
    assert "not allowed with" in fails(2, *quick, "--run-dir", run_dir, "--overwrite", "--resume")


def test_the_folder_of_a_live_graph_gets_no_run(quick: list[str], tmp_path: Path, fails: Fails) -> None:
    (tmp_path / "graph.toml").touch()
    assert "is a live graph; train needs a folder of its own" in fails(3, *quick, "--run-dir", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["graph.toml"]


def test_resume_needs_no_other_flag_and_takes_none_that_differs(
    quick: list[str], tmp_path: Path, fails: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    assert main([*quick, "--run-dir", str(run_dir)]) == 0
    found = metrics(run_dir)
    (run_dir / "metrics.json").unlink()
    assert main(["train", "--resume", "--run-dir", str(run_dir)]) == 0
    assert metrics(run_dir) == found
    assert main([*quick, "--resume", "--run-dir", str(run_dir)]) == 0  # the same flags again do no harm
    said = fails(2, "train", "--resume", "--run-dir", run_dir, "--hidden-channels", "16")
    assert "--hidden-channels: the run in" in said
    assert "was begun with 8 (got 16)" in said
    assert "no run to resume" in fails(3, "train", "--resume", "--run-dir", tmp_path / "none")


@pytest.mark.parametrize("name", ["run.toml", "run.yaml"])
def test_config_file(quick: list[str], facts: Path, tmp_path: Path, runs: dict[str, Path], name: str) -> None:
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    sign = "=" if name.endswith("toml") else ":"
    options = {
        "facts": str(facts),
        "holdout": 0.1,
        "model": "DE",
        "run-dir": str(tmp_path / "run"),
        "epochs": 2,
        "hidden_channels": 8,
        "negatives": 5,
        "lr": 0.5,
        "seed": 7,
    }
    lines = "".join(f"{key} {sign} {json.dumps(value)}\n" for key, value in options.items())
    (tmp_path / name).write_text(lines)
    # Flags override the file: with these two the run is that of the fixture.
    assert main(["train", "--config", str(tmp_path / name), "--seed", "1", "--lr", "0.005"]) == 0
    assert metrics(tmp_path / "run") == metrics(runs["tie-1"])


def test_flag_for_data_replaces_that_of_the_file(quick: list[str], tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('dataset = "YAGO11k"\nepochs = 1\n')
    assert main([*quick, "--config", str(tmp_path / "run.toml"), "--run-dir", str(tmp_path / "run")]) == 0
    assert Result.load(tmp_path / "run" / "metrics.json").dataset == "TabularTKG"


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("run.toml", "epoch = 3", 2, "unknown option 'epoch'; did you mean epochs"),
        ("run.toml", "epochs = [3]", 2, "epochs must be a number or a string (got [3])"),
        ("run.toml", "epochs = -3", 2, "argument --epochs: expected a whole number of at least 1 (got '-3')"),
        ("run.toml", 'dataset = "YAGO11k"\nfacts = "x"', 2, "either --dataset or --facts"),
        ("run.toml", "epochs = ", 3, "cannot be read"),
        ("run.yaml", "epochs: [", 3, "cannot be read"),
        ("run.yaml", "- epochs", 3, "must hold options with their values (got list)"),
        ("run.json", "{}", 2, "must be a .toml, .yaml or .yml file"),
    ],
)
def test_config_file_in_error(tmp_path: Path, fails: Fails, name: str, text: str, code: int, said: str) -> None:
    (tmp_path / name).write_text(text)
    assert said in fails(code, "train", "--config", tmp_path / name, "--run-dir", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_own_splits(facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = facts.read_text().splitlines(keepends=True)
    for name, part in {"train": lines[:26], "test": lines[26:]}.items():
        (tmp_path / f"{name}.tsv").write_text("".join(part))
    data = ["--facts", str(tmp_path / "train.tsv"), "--test", str(tmp_path / "test.tsv")]
    flags = ["--epochs", "1", "--hidden-channels", "4", "--run-dir", str(tmp_path / "run")]
    assert main(["train", *data, *flags, "--threshold", "9"]) == 0
    # Five facts begin in 2000 and end in 2003: ten dates, more than nine, and so on.
    assert "TabularTKG(5 steps 2000–2003 … 2020–2023" in capsys.readouterr().err
    stored = RunOptions.load(tmp_path / "run")
    assert (stored.threshold, stored.test) == (9, str(tmp_path / "test.tsv"))


def test_defaults_follow_the_size_of_the_graph() -> None:
    suited = {name: each.metadata["suited"] for name, each in OPTIONS.items() if each.metadata["suited"]}
    small, large = RunOptions(strategy="supersede").suited_to(99), RunOptions(epochs=7).suited_to(10**6)
    for name, (of_small, of_large) in suited.items():
        assert getattr(small, name) == of_small
        if name != "unlikelihood":  # which TIE does not have
            assert getattr(large, name) == (7 if name == "epochs" else of_large)
    assert (small.base_epochs, large.base_epochs) == (20, 7)


def test_nothing_is_learnt_from_the_end_of_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Fails
) -> None:
    for strategy, names in (("tie", ("deletion",)), ("supersede", ("contrast", "unlikelihood"))):
        usual, events = (RunOptions(strategy=strategy).suited_to(99, is_events) for is_events in (False, True))
        assert all(getattr(usual, name) > 0 and getattr(events, name) == 0 for name in names)
    assert RunOptions(deletion=0.5).suited_to(99, is_events=True).deletion == 0.5
    lines = [f"e{i % 7},meets,e{i % 5 + 2},2020-01-{i % 28 + 1:02}" for i in range(200)]
    (tmp_path / "events.csv").write_text("head,rel,tail,time\n" + "\n".join(dict.fromkeys(lines)))
    quick = ["--hidden-channels", "4", "--epochs", "1", "--base-epochs", "1", "--facts", str(tmp_path / "events.csv")]
    assert main(["train", *quick, "--run-dir", str(tmp_path / "run")]) == 0
    assert "nothing is learnt from their end" in capsys.readouterr().err
    history = Result.load(tmp_path / "run" / "metrics.json").history
    assert history
    assert all("del" not in record for record in history)
    said = fails(2, "train", *quick, "--exclude-ended", "--run-dir", tmp_path / "other")
    assert "--exclude-ended is for facts that last" in said


def test_options_that_are_not_used_stay_open() -> None:
    options = RunOptions(strategy="ft").suited_to(99)
    assert (options.replay, options.regularization, options.replay_negatives) == (None, None, None)
    assert RunOptions(protocol="joint").suited_to(99).negatives is None


def test_only_boundary_facts_are_of_the_whole_past() -> None:
    dataset = SyntheticTKG(num_entities=50, num_steps=4)
    boundary, others = "Replayed(window='all', size=3000, sampling='boundary')", "Replayed(window=3, size=3000, "
    assert boundary in repr(make_trainer(RunOptions(window=3), dataset).strategy)
    assert others in repr(make_trainer(RunOptions(window=3, replay="frequency"), dataset).strategy)


def test_defaults_follow_the_model() -> None:
    dataset = SyntheticTKG(num_entities=50, num_steps=4)
    assert RunOptions(model="HyTE").suited_to(99).max_frequency is None
    assert "max_frequency" not in make_trainer(RunOptions(model="HyTE"), dataset).model.options
    assert make_trainer(RunOptions(), dataset).model.options["max_frequency"] == 0.3
    assert make_trainer(RunOptions(max_frequency=0.7), dataset).model.options["max_frequency"] == 0.7


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_combination_makes_a_trainer(model: str, strategy: str) -> None:
    dataset = WorldLeaders()
    trainer = make_trainer(RunOptions(model=model, strategy=strategy, hidden_channels=8, reciprocal=True), dataset)
    assert type(trainer.model).__name__ == model


def test_options_reach_the_trainer() -> None:
    options = RunOptions(
        epochs=11, optimizer="published", lr=0.25, patience=3, batch_size=7, weight_decay=0.5, autocast="bf16",
        window=4, replay="inverse", replay_size=9, replay_window=3, replay_weight=2.0, regularization=0.5,
        learn_from="all", negatives="all", base_negatives=6, replay_negatives=3, negative_pool=77, base_epochs=5,
        new_entities="keep", decoder="distmult", seed=5, n3=0.25,
    )  # fmt: skip
    dataset = SyntheticTKG(num_entities=50, num_steps=4)
    trainer = make_trainer(options, dataset)
    learning = LearningSettings(11, 3, 7, "published", 0.25, weight_decay=0.5, autocast="bf16", n3=0.25)
    assert trainer.settings.learning == learning
    assert trainer.settings.base.learning == replace(learning, epochs=5)
    replay = ReplayOptions("inverse", 9, 3, 3, 2.0)
    expected = TIE(facts="all", negatives="all", window=4, regularization=0.5, replay=replay)
    assert repr(trainer.strategy) == repr(expected)
    ours = RunOptions(strategy="supersede", window=4, unlikelihood=3.0)
    term = UnlikelihoodLoss(Deleted(4, unreplaced=True), weight=3.0)
    assert repr(term) in repr(make_trainer(ours, dataset).strategy)
    assert (trainer.settings.base.negatives, trainer.settings.negative_pool, trainer.seed) == (6, 77, 5)
    assert trainer.settings.new_entities == "keep"
    assert trainer.model.options["decoder"] == "distmult"


def test_every_option_has_a_flag_and_a_place_in_run_json(quick: list[str], runs: dict[str, Path]) -> None:
    stored = json.loads((runs["tie-0"] / "run.json").read_text())
    assert list(stored["options"]) == list(OPTIONS)
    assert stored["options"]["negatives"] == 5
    assert set(stored) == {"version", "begun", "command", "options"}
    train = next(each for each in make_parser()._actions if each.choices).choices["train"]
    assert {f"--{name.replace('_', '-')}" for name in OPTIONS} <= set(train._option_string_actions)


def test_joint_protocol(facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["train", "--facts", str(facts), "--protocol", "joint", "--hidden-channels", "8", "--base-epochs", "3"]
    data += ["--holdout", "0.1"]
    assert main([*data, "--run-dir", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("MRR", "Hits@1", "Hits@3", "Hits@10"))
    found = Result.load(tmp_path / "run" / "metrics.json").link_prediction
    assert set(found) == {"MRR", "Hits@1", "Hits@3", "Hits@10"}
    assert "Link prediction" in (tmp_path / "run" / "report.html").read_text()
    assert main(["train", "--resume", "--run-dir", str(tmp_path / "run")]) == 0
    assert Result.load(tmp_path / "run" / "metrics.json").link_prediction == found


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_configurations_of_the_repository(path: Path) -> None:
    args = make_parser().parse_args(["train", "--config", str(path)])
    given = merge(args)
    options = RunOptions(**given)
    options.refuse_unused(given)
    assert path.stem.startswith(options.dataset.lower())
    assert options.protocol == "joint" or "replay" in given


def test_seeds_beyond_32_bits(quick: list[str], tmp_path: Path) -> None:
    assert main([*quick, "--seed", "20261117195020", "--run-dir", str(tmp_path / "run")]) == 0
    assert Result.load(tmp_path / "run" / "metrics.json").seed == 20261117195020


def test_folder_that_is_deleted_while_running(
    quick: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Fails
) -> None:
    run_dir = tmp_path / "run"

    def delete(self: StepLines, trainer: object, record: dict[str, object] | None) -> None:
        if record is not None:
            shutil.rmtree(run_dir, ignore_errors=True)

    monkeypatch.setattr(StepLines, "on_step_end", delete)
    assert "was deleted while the run was writing to it" in fails(3, *quick, "--run-dir", run_dir)


def test_shared_base_model(quick: list[str], tmp_path: Path, runs: dict[str, Path]) -> None:
    for name in ("a", "b"):
        assert main([*quick, "--base", str(tmp_path / "base.pt"), "--run-dir", str(tmp_path / name)]) == 0
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b") == metrics(runs["tie-0"])
