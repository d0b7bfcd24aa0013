"""The tables of the page of models are those of `results/zoo/runs.csv`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "examples"))  # the examples are scripts, not a package

from zoo_page import COLUMNS, PAGE, add, fill, incremental_table, read, read_run, zoo_table  # noqa: E402


def test_the_page_shows_what_was_measured() -> None:
    assert PAGE.read_text(encoding="utf-8") == fill(), "run: python examples/zoo_page.py"


def test_every_run_names_its_seed_commit_and_command() -> None:
    for run in read("runs.csv"):
        assert tuple(run) == COLUMNS
        assert run["seed"].isdigit()
        assert run["commit"]
        assert run["seconds"].isdigit() or not run["seconds"]  # not recorded
        assert run["command"].startswith("tkg-incremental train ")
        assert bool(run["MRR"]) != bool(run["C@10"])  # joint or incremental


def folder_of(tmp_path: Path, **metrics: object) -> Path:
    options = {"protocol": "joint", "decoder": None, "reciprocal": True, "hidden_channels": 1000, "base_epochs": 2}
    command = "tkg-incremental train --config a.toml --root /there --run-dir x --overwrite"
    found = {"dataset": "ICEWS14", "model": "TNTComplEx", "strategy": "joint", "seed": 0, "steps": []}
    (tmp_path / "metrics.json").write_text(json.dumps({**found, "link_prediction": {"MRR": 50.123}, **metrics}))
    (tmp_path / "run.json").write_text(json.dumps({"command": command, "options": options}))
    return tmp_path


def test_a_joint_run(tmp_path: Path) -> None:
    run = read_run(folder_of(tmp_path), 90)
    assert run["command"] == "tkg-incremental train --config a.toml"
    assert run["settings"] == "width 1,000, epochs 2, reciprocal"
    add(run, tmp_path)
    (tmp_path / "published.csv").write_text("dataset,model,MRR\nICEWS14,TNTComplEx,60.7\n")
    row = zoo_table(tmp_path).splitlines()[2]
    assert row == "| ICEWS14 | TNTComplEx | 50.12 |  |  |  | 60.7 | width 1,000, epochs 2, reciprocal | 1.5 |"
    assert len(incremental_table(tmp_path).splitlines()) == 2


def test_an_incremental_run(tmp_path: Path) -> None:
    summary = {"C@10": 1.0, "DF@10": 2.0, "RRD": -3.0, "A@10": 4.0}
    steps = [{"A@10 incremental": 5.0}, {"A@10 incremental": 6.0}]
    folder = folder_of(tmp_path, link_prediction={}, summary=summary, steps=steps, transfer={"BWT": -1.5})
    add(read_run(folder, 10), tmp_path)
    row = incremental_table(tmp_path).splitlines()[2]
    assert "| 1.00 | 5.50 | 4.00 | 2.00 | −3.00 | −1.50 |" in row
