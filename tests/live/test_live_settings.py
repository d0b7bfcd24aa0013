"""``graph.toml`` is edited by people: wrong values are named, and none is ignored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_live import succession

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.live_settings import LiveSettings


def edit(path: Path, old: str, new: str) -> None:
    file = path / "graph.toml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\nepochs = 6", '\nepochs = "x"', "epochs in [learning] must be an integer (got 'x')"),
        ("\nepochs = 6", "\nepochs = true", "epochs in [learning] must be an integer (got True)"),
        ("\nepochs = 6", "\nepochs = 0", "epochs must be at least 1 (got 0)"),
        ("hidden_channels = 16", 'hidden_channels = "16"', "hidden_channels in [model] must be an integer (got '16')"),
        ("hidden_channels = 16", "hidden_channels = 1.5", "hidden_channels in [model] must be an integer (got 1.5)"),
        ('name = "TNTComplEx"', "name = 3", "name in [model] must be a string (got 3)"),
        ("seed = 0", "seed = -1", "seed must be in 0 … 2^63 - 1 (got -1)"),
        ("seed = 0", "seed = 1e300", "seed in [model] must be an integer (got 1e+300)"),
        ("replay = 50", "replay = -1", "replay must be at least 0 (got -1)"),
        ("update_epochs = 4", "update_epochs = 0", "update_epochs must be at least 1 (got 0)"),
        ("\nlr = 0.1", "\nlr = nan", "lr in [learning] must be finite (got nan)"),
        (
            "\nlr = 0.1",
            "\nlearning_rate = 0.1",
            "[learning] has no option 'learning_rate' (expected one of accumulator,",
        ),
        ("learned = 0.0", 'learned = "high"', "learned in [gate] must be a number (got 'high')"),
        ("learned = 0.0", "learned = nan", "learned in [gate] must be finite (got nan)"),
        ("drift = 0.0", "drift = -1", "drift must be at least 0 and finite (got -1)"),
        ("sample = 50", "sample = 0", "sample must be at least 1 (got 0)"),
        (
            "[gate]",
            "[gates]",
            "there is no table [gates] (expected one of graph, model, ",
        ),
        ("[gate]", "[[gate]]", "[gate] must be a table (got [{"),
        ("[graph]", "model_options = 3\n[graph]", "[model_options] must be a table (got 3)"),
        ("first = 80", 'first = "a"', "first in [graph] must be an integer (got 'a')"),
        ("first = 80", "", "first in [graph] must be an integer (got None)"),
        ("first = 80", f"first = {2**61}", f"first in [graph] must have at most 61 bits (got {2**61})"),
        ('unit = "index"', 'unit = "day"', "unit in [graph] must be 'index', as in the fact store (got 'day')"),
    ],
)
def test_wrong_values_are_named(path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str) -> None:
    edit(path, old, new)
    assert main(["query", str(path), "?", "leads", "R&D"]) == 3
    assert f"error: '{path / 'graph.toml'}': {said}" in capsys.readouterr().err
    with pytest.raises(ValueError):
        LiveGraph(path)


@pytest.mark.parametrize("first", [79, 81, 101, -(10**12)])
def test_a_first_step_that_does_not_fit(path: Path, capsys: pytest.CaptureFixture[str], first: int) -> None:
    """All facts would be learnt at other steps."""
    edit(path, "first = 80", f"first = {first}")
    for command in (["query", str(path), "?", "leads", "R&D"], ["update", str(path)]):
        assert main(command) == 3
        assert f"is {first}, which does not fit the 21 steps of release 0 until 100" in capsys.readouterr().err


def test_a_graph_that_cannot_be_opened_is_not_locked(path: Path) -> None:
    edit(path, "learned = 0.0", "learned = nan")
    with pytest.raises(ValueError):
        LiveGraph(path, write=True)
    edit(path, "learned = nan", "learned = 0")
    with LiveGraph(path, write=True) as graph:
        assert graph.gate.learned == 0
        assert graph.update(**succession(1)).state == "released"


def test_round_trip() -> None:
    settings = LiveSettings(hidden_channels=6, lr=1, options={"seed": 3})
    tables = settings.to_tables()
    assert LiveSettings.from_tables(tables["model"], tables["learning"], tables["model_options"]) == settings
    assert LiveSettings.from_tables({}) == LiveSettings()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"current": -1}, "current must be at least 0"),
        ({"seed": 2**63}, "seed must be in 0"),
    ],
)
def test_ranges(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(LiveSettings(), **change)
    assert replace(LiveSettings(), current=0, replay=0, seed=2**63 - 1, rounds=1).replay == 0


@pytest.mark.parametrize("name", ["learned", "kept", "outranked", "drift"])
def test_the_gate_compares_with_numbers(name: str) -> None:
    for value in (float("nan"), float("inf"), -0.1):
        with pytest.raises(ValueError, match=f"{name} must be at least 0 and finite"):
            GateSettings(**{name: value})
    assert getattr(GateSettings(**{name: 0.0}), name) == 0


@pytest.mark.parametrize(
    ("given", "facts", "width", "lr"),
    [
        ({}, 3000, 128, 0.1),
        ({}, 3001, 256, 0.3),
        ({"lr": 0.2}, 3001, 256, 0.2),
        ({"hidden_channels": 16}, 3001, 16, 0.1),
    ],
)
def test_settings_that_fit_the_number_of_facts(given: dict[str, Any], facts: int, width: int, lr: float) -> None:
    settings = LiveSettings(**given).sized(facts)
    assert (settings.hidden_channels, settings.lr, settings.update_lr) == (width, lr, 0.1)


@pytest.mark.parametrize("line", ["", "hidden_channels = 0\n"])
def test_a_file_without_a_width(tmp_path: Path, line: str) -> None:
    """Earlier versions read it as 128."""
    facts = tmp_path / "facts.csv"
    facts.write_text("head,rel,tail,start,end\nAnn,leads,R&D,2026-01-01,\n")
    with LiveGraph.create(tmp_path / "graph", facts, settings=LiveSettings(epochs=1)) as graph:
        graph.train(calibrate=False)
    edit(tmp_path / "graph", "hidden_channels = 128\n", line)
    with LiveGraph(tmp_path / "graph") as graph:
        assert graph.settings.hidden_channels == 128
        assert graph.query(None, "leads", "R&D")[0].name == "Ann"


def test_the_width_of_a_new_graph_is_written(tmp_path: Path) -> None:
    facts = tmp_path / "facts.csv"
    facts.write_text("head,rel,tail,start,end\nAnn,leads,R&D,2026-01-01,\n")
    with LiveGraph.create(tmp_path / "graph", facts):
        assert "hidden_channels = 128\n" in (tmp_path / "graph" / "graph.toml").read_text()
