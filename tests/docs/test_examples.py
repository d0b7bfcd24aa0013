"""The examples run."""

from __future__ import annotations

import runpy
import sys
import warnings
from pathlib import Path

import pytest

from tkg_incremental import IncrementalTrainer, LearningSettings, LiveGraph, TrainerSettings
from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets import SyntheticTKG, WorldLeaders
from tkg_incremental.models import DE
from tkg_incremental.strategies import FT
from tkg_incremental.training import BaseSettings

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_rgcn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["rgcn.py", "--epochs", "1"])
    runpy.run_path(str(EXAMPLES / "rgcn.py"), run_name="__main__")
    assert "epoch 1: loss" in capsys.readouterr().out


def test_custom_strategy() -> None:
    view = runpy.run_path(str(EXAMPLES / "custom_strategy.py"))["NeighboursOfChange"]()
    timeline = SyntheticTKG(num_entities=30, num_steps=8).timeline
    quads, added = view.select(timeline, 5, None), timeline.observed.added(5)
    assert len(quads)
    assert (quads[:, 3] < 5).all()
    changed = set(added[:, [0, 2]].flatten().tolist())
    assert all({head, tail} & changed for head, _, tail, _ in quads.tolist())


def test_questions_before_a_step_are_about_the_last_step_learnt() -> None:
    """A later one would be answered as of that step, with a warning at each step."""
    interviewer = runpy.run_path(str(EXAMPLES / "common.py"))["Interviewer"]
    dataset, learning = WorldLeaders(), LearningSettings(epochs=1)
    settings = TrainerSettings(learning, BaseSettings(visits=1, negatives=5))
    model, base = DE.from_dataset(dataset, hidden_channels=4), dataset.timeline.base_step
    trainer = IncrementalTrainer(model, dataset, FT(negatives=5), settings=settings, callbacks=[interviewer()])
    trainer.pretrain()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*is after the last step")
        trainer.fit(until=base + 1)


def test_aliases_of_the_demo(tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "live_leaders.py"))
    dataset = WorldLeaders()
    facts = list(example["named_facts"](dataset))
    example["write_export"](tmp_path / "leaders.csv", facts, 1960)
    aliases = example["known_aliases"](dataset, facts, 1960)
    assert "Czechia" not in aliases  # the Czech Republic begins later
    with LiveGraph.create(tmp_path / "graph", tmp_path / "leaders.csv", unit="year", aliases=aliases) as graph:
        store = graph.folder.store
        assert store.entities.find("USA") == store.entities.find("United States") is not None


def test_the_demo_knows_all_facts() -> None:
    """The facts of all splits: a question about a withheld fact would get a wrong answer."""
    dataset = WorldLeaders()
    facts = list(runpy.run_path(str(EXAMPLES / "live_leaders.py"))["named_facts"](dataset))
    timeline = dataset.timeline
    assert len(facts) == sum(len(timeline.split(name).facts) for name in ("train", "val", "test"))
    assert ("Emmanuel Macron", "president of", "France", 2017, None) in facts


def test_intervals_of_years() -> None:
    interval = runpy.run_path(str(EXAMPLES / "timeplex.py"))["interval"]
    axis = TimeAxis.from_instants([1990, 1995, 2000, 2003])
    for years, steps in (
        ((1990, 2000), (0, 2)),
        ((1995, None), (1, 3)),
        ((None, 1995), (0, 1)),
        ((2000, 1995), (2, 2)),
        ((None, -1), (0, 0)),
    ):
        assert interval((7, 8, 9, *years), axis) == (7, 8, 9, *steps)
