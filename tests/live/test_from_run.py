"""A run that ``train`` made becomes a live graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models import DE, TNTComplEx, load_model, save_model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on ten years of two offices."""
    folder = tmp_path_factory.mktemp("run")
    rows = [f"leader {year},leads,R&D,{year},{year}\n" for year in range(2010, 2020)]
    rows += [f"person {i},works in,{('R&D', 'Sales')[i % 2]},2010,\n" for i in range(10)]
    (folder / "facts.csv").write_text("head,rel,tail,start,end\n" + "".join(rows))
    command = ["train", "--facts", str(folder / "facts.csv"), "--holdout", "0", "--run-dir", str(folder / "run")]
    flags = ["--unit", "year", "--model", "TNTComplEx", "--hidden-channels", "16", "--epochs", "3", "--reciprocal"]
    assert main([*command, *flags, "--base-epochs", "20"]) == 0
    return folder / "run"


def test_run_becomes_a_graph(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", str(tmp_path / "graph"), "--from-run", str(run), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["state"], about["facts"], about["entities"]) == ("released", 20, 22)
    model = load_model(run / "model.pt")
    with LiveGraph(tmp_path / "graph") as graph:
        # The same model gives the same answers.
        for year in (2010, 2014, 2019):
            expected = {answer.name: answer.score for answer in model.query(None, "leads", "R&D", year)}
            found = {answer.name: answer.score for answer in graph.query(None, "leads", "R&D", at=year)}
            assert found == pytest.approx(expected)
        assert graph.check("leader 2014", "leads", "R&D", at=2014).known == ("2014", "2014")
        # Facts of the last step have no end: an update can end them.
        assert graph.check("leader 2019", "leads", "R&D", at=2019).known == ("2019", None)
        changes: dict[str, Any] = {"added": [("Zoë", "leads", "R&D")], "ended": [("leader 2019", "leads", "R&D")]}
        assert graph.update(**changes, force=True).state == "released"
        assert [answer.name for answer in graph.query(None, "leads", "R&D", only="known")] == ["Zoë"]
        assert graph.clock.now == 2020
        graph.rollback(0)
        assert graph.query(None, "leads", "R&D")[0].name == "leader 2019"


def test_what_cannot_become_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create = ["create", str(tmp_path / "graph"), "--from-run"]
    assert main([*create, "nowhere"]) == 3
    assert "there is no run folder 'nowhere'" in capsys.readouterr().err
    for flag in (["--model", "DE"], ["--unit", "day"], ["--dayfirst"], ["--seed", "1"], ["--no-train"]):
        with pytest.raises(SystemExit, match="2"):
            main([*create, "nowhere", *flag])
        assert f"{flag[0]} goes with --facts; a run has its own" in capsys.readouterr().err
    assert not (tmp_path / "graph").exists()


def catalog(last_step: int | None = None) -> Catalog:
    """Steps of several years, with a gap after 2005: facts (0, 0, 1) at steps 0 … 1 and (2, 0, 1) at step 2."""
    axis = TimeAxis((2000, 2003, 2010), (2002, 2005, 2011), "year")
    facts = torch.tensor([[0, 0, 1, 0, 1], [2, 0, 1, 2, 2]], dtype=torch.int32)
    entities = Vocabulary(["Ann", "R&D", "Bo"], "entity", {"Research": "R&D"})
    seen = torch.tensor([0, 0, 2])
    return Catalog(entities, Vocabulary(["leads"], "relation"), axis, seen, facts, last_step)


def test_steps_of_several_instants(tmp_path: Path) -> None:
    model = TNTComplEx(3, 1, 3, hidden_channels=4)
    model.catalog = catalog()
    save_model(model, tmp_path / "model.pt")
    with LiveGraph.from_run(tmp_path / "graph", tmp_path) as graph:
        assert (graph.show(graph.clock.origin), graph.show(graph.clock.now)) == ("2000", "2011")
        rows, table = graph.model.tables()["time_vectors"], model.tables()["time_vectors"]
        assert rows.equal(table[[0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2]])
        assert graph.check("Ann", "leads", "R&D", at=2001).known == ("2000", "2005")
        assert graph.check("Bo", "leads", "Research", at=2011).known == ("2010", None)
        assert not graph.model.reciprocal  # as in the run
        assert graph.update(added=[("Cy", "leads", "R&D")], force=True).state == "released"


def test_only_what_the_model_has_learnt(tmp_path: Path) -> None:
    model = TNTComplEx(3, 1, 3, hidden_channels=4, reciprocal=True)
    model.catalog = catalog(last_step=1)
    save_model(model, tmp_path / "model.pt")
    with LiveGraph.from_run(tmp_path / "graph", tmp_path / "model.pt") as graph:
        assert (graph.show(graph.clock.now), graph.folder.store.num_facts) == ("2005", 1)
        assert graph.check("Ann", "leads", "R&D").known == ("2000", None)


def test_models_that_compute_with_step_numbers(tmp_path: Path) -> None:
    model = DE(3, 1, 3, hidden_channels=4)
    model.catalog = catalog()
    save_model(model, tmp_path / "model.pt")
    with pytest.raises(ValueError, match="DE computes vectors from the numbers of steps"):
        LiveGraph.from_run(tmp_path / "graph", tmp_path)
    assert not (tmp_path / "graph").exists()
