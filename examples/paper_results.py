"""The files of results: `results/DATASET.csv` has one line per run, `results/tables.csv` the published figures,
`results/reasons.csv` why some of ours differ from them."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).resolve().parents[1] / "results"
METRICS = ("C@10", "DF@10", "RRD", "A@10")
#: A@10 is the mean over the incremental steps, as in the paper's tables; times are in seconds and minutes.
COLUMNS = (
    *("dataset", "model", "cell", "seed", "commit", "C@10", "DF@10", "RRD", "A@10", "A@10 all steps", "MRR"),
    *("C@10 new entities", "data_size", "epoch_seconds", "epochs", "batches", "minutes", "command"),
)
#: How batches are drawn now, as in the released code. Runs made before the rebuild have ``"grouped"`` by time.
BATCHES = "uniform"
OTHER_FILES = ("tables.csv", "reasons.csv")


class Key(NamedTuple):
    """One row of a table, shared by the runs of all seeds."""

    dataset: str
    model: str
    cell: str


Runs = dict[Key, list[dict[str, str]]]


class Row(NamedTuple):
    """One row of a table of the paper: its number, its key, the published means and standard deviations."""

    table: int
    key: Key
    paper: dict[str, float]
    deviation: dict[str, float]


def add_run(run: Mapping[str, Any], results: Path = RESULTS) -> None:
    """Appends a run to the file of its dataset. Columns that are missing stay empty."""
    path = results / f"{run['dataset']}.csv"
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(run)


def read_runs(results: Path = RESULTS) -> Runs:
    """All runs by the row they belong to. Runs with grouped batches are left out where there are newer ones."""
    runs: Runs = {}
    for path in sorted(results.glob("*.csv")):
        if path.name not in OTHER_FILES:
            for run in _lines(path):
                runs.setdefault(Key(run["dataset"], run["model"], run["cell"]), []).append(run)
    for key, found in runs.items():
        runs[key] = [run for run in found if run["batches"] == BATCHES] or found
    return runs


def read_tables(results: Path = RESULTS) -> list[Row]:
    """The rows of the paper's tables, in their order."""
    return [
        Row(
            int(line["table"]),
            Key(line["dataset"], line["model"], line["cell"]),
            {name: float(line[name]) for name in METRICS if line[name]},
            {name: float(line[f"{name} std"]) for name in METRICS if line[f"{name} std"]},
        )
        for line in _lines(results / "tables.csv")
    ]


def read_reasons(results: Path = RESULTS) -> dict[tuple[Key, str], str]:
    """Reasons for differences from the paper by row and metric, which were found by looking."""
    path = results / "reasons.csv"
    lines = _lines(path) if path.exists() else []
    return {(Key(line["dataset"], line["model"], line["cell"]), line["metric"]): line["reason"] for line in lines}


def is_new(runs: list[dict[str, str]]) -> bool:
    """Whether runs have the current protocol."""
    return bool(runs) and runs[0]["batches"] == BATCHES


def mean(runs: list[dict[str, str]], name: str) -> float | None:
    """The mean of a column over runs; None if no run has it."""
    values = [float(run[name]) for run in runs if run[name]]
    return statistics.mean(values) if values else None


def deviation(runs: list[dict[str, str]], name: str) -> float | None:
    """The standard deviation of a column over runs; None with fewer than two."""
    values = [float(run[name]) for run in runs if run[name]]
    return statistics.stdev(values) if len(values) > 1 else None


def _lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
