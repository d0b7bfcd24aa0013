"""The tables of the page of models are those of `results/zoo/runs.csv`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "examples"))  # the examples are scripts, not a package

from zoo_page import (  # noqa: E402
    CELL_COLUMNS,
    COLUMNS,
    INCREMENTAL,
    PAGE,
    STRATEGIES,
    add,
    add_cell,
    fill,
    incremental_table,
    matrix_table,
    read,
    read_run,
    zoo_table,
)


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


def test_no_run_is_there_twice() -> None:
    runs = [tuple(run.values()) for run in read("runs.csv")]
    assert len(set(runs)) == len(runs)


def test_the_matrix() -> None:
    cells = read("matrix.csv")
    names = [(cell["dataset"], cell["model"], cell["strategy"]) for cell in cells]
    assert len(set(names)) == len(names)
    for cell in cells:
        assert cell["strategy"] in STRATEGIES
        assert cell["seconds"].isdigit()
        assert cell["command"].startswith(f"tkg-incremental train --dataset {cell['dataset']} --model {cell['model']} ")
        assert all(cell[name] for name in INCREMENTAL if name != "A@10 all steps")


def test_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text(
        "dataset,model,strategy,C@10,A@10,DF@10,RRD,BWT,seconds\n"
        "Some,HyTE,Supersede,1,2,3,-4,5,6\nOther,DE,FT,0,0,0,0,0,0\nSome,HyTE,TIE,2,2,3,-4,5,6\nSome,DE,TR,3,2,3,-4,5,6\n"
    )
    rows = matrix_table("Some", tmp_path).splitlines()[2:]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| DE", "TR", "3"],
        ["| HyTE", "TIE", "2"],
        ["| HyTE", "Supersede", "1"],
    ]
    assert rows[0].endswith("| −4 | 5 | 6 |")


def test_a_cell_replaces_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text(",".join(CELL_COLUMNS) + "\n")
    for model, seconds in (("DE", 1), ("HyTE", 2), ("DE", 3)):
        add_cell(dict.fromkeys(COLUMNS, "0") | {"model": model, "seconds": seconds}, tmp_path)
    assert [(cell["model"], cell["seconds"]) for cell in read("matrix.csv", tmp_path)] == [("HyTE", "2"), ("DE", "3")]


def folder_of(tmp_path: Path, excluded: bool = False, **metrics: object) -> Path:
    options = {"protocol": "joint", "decoder": None, "reciprocal": True, "hidden_channels": 1000, "base_epochs": 2}
    options["exclude_ended"] = excluded
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
    assert row == "| ICEWS14 | TNTComplEx | 50.12 |  |  |  | 60.7 | width 1,000, epochs 2 | 1.5 |"
    assert len(incremental_table(tmp_path).splitlines()) == 2


def test_an_incremental_run(tmp_path: Path) -> None:
    summary = {"C@10": 1.0, "DF@10": 2.0, "RRD": -3.0, "A@10": 4.0}
    steps = [{"A@10 incremental": 5.0}, {"A@10 incremental": 6.0}]
    bwt = {"BWT": -1.5}
    add(read_run(folder_of(tmp_path, link_prediction={}, summary=summary, steps=steps, transfer=bwt), 10), tmp_path)
    add(
        read_run(folder_of(tmp_path, True, link_prediction={}, summary=summary, steps=steps, transfer=bwt), 10),
        tmp_path,
    )
    excluded, ranked = incremental_table(tmp_path).splitlines()[2:]
    assert "| ranked | 0 | 1.00 | 5.50 | 4.00 | 2.00 | −3.00 | −1.50 | width 1,000" in ranked
    assert "| excluded | 0 | 1.00 |" in excluded
