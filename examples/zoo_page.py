"""The tables of the zoo in `docs/models.md`: `python examples/zoo_page.py` writes them from `results/zoo/runs.csv` and
`results/zoo/matrix.csv`.

`python examples/zoo_page.py RUN --seconds S` first adds a run of `tkg-incremental train`, with its CPU seconds; with
`--matrix` as a cell of the matrix, in the place of an earlier one.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
from math import isnan
from pathlib import Path
from statistics import mean
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "results" / "zoo"
PAGE = REPOSITORY / "docs" / "models.md"
JOINT = ("MRR", "Hits@1", "Hits@3", "Hits@10")
INCREMENTAL = ("C@10", "A@10", "A@10 all steps", "DF@10", "RRD", "BWT")
COLUMNS = ("dataset", "model", "strategy", "seed", "commit", "settings", *JOINT, *INCREMENTAL, "seconds", "command")
CELL = ("dataset", "model", "strategy")
CELL_COLUMNS = (*CELL, "seed", "commit", "C@10", "A@10", "DF@10", "RRD", "BWT", "seconds", "command")
REGION = re.compile(r"(<!-- (zoo|incremental|matrix \w+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
EXCLUDED = "ended facts excluded"
STRATEGIES = ("FT", "TR", "TIE", "Supersede")
# Settings by which the rows of a table differ; the file has all of them.
JOINT_SETTINGS = ("width", "epochs", "N3", "smoothness")
INCREMENTAL_SETTINGS = ("width", "rate", "contrast", "unlikelihood")


def describe(options: dict[str, Any]) -> str:
    """The options of a run that are not defaults, in short."""
    joint = options["protocol"] == "joint"
    names = {"hidden_channels": "width", "base_epochs": "epochs" if joint else "base epochs", "n3": "N3"}
    names |= {"optimizer": "optimizer", "lr": "rate", "batch_size": "batch", "base_negatives": "negatives"}
    if joint:
        names |= {"together": "together", "cooldown": "cooldown", "dropout": "dropout", "weight_decay": "L2"}
        names |= {"temporal_share": "temporal share", "smoothness": "smoothness"}
    else:
        names |= {"epochs": "epochs", "contrast": "contrast", "unlikelihood": "unlikelihood", "replay": "replay"}
    shown = {label: options[name] for name, label in names.items() if options.get(name)}
    if shown.get("together") == 1:
        del shown["together"]
    text = ", ".join(
        f"{label} {value:,}" if isinstance(value, int) else f"{label} {value}" for label, value in shown.items()
    )
    flags = {"reciprocal": "reciprocal", "exclude_ended": EXCLUDED}
    return ", ".join([text, *(label for name, label in flags.items() if options.get(name))])


def read_run(folder: Path, seconds: float) -> dict[str, Any]:
    """A line of the file from the folder of a run."""
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    begun = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    options = begun["options"]
    model = metrics["model"] if options["decoder"] is None else f"{metrics['model']} {options['decoder']}"
    run = {"dataset": metrics["dataset"], "model": model, "strategy": metrics["strategy"], "seed": metrics["seed"]}
    run["commit"] = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, text=True).strip()
    found = dict(metrics["link_prediction"])
    if metrics["steps"]:
        found = {name: metrics["summary"][name] for name in ("C@10", "DF@10", "RRD")} | {
            "BWT": metrics["transfer"]["BWT"]
        }
        found["A@10 all steps"] = metrics["summary"]["A@10"]
        found["A@10"] = mean(step["A@10 incremental"] for step in metrics["steps"])
    figures = {name: f"{value:.2f}" for name, value in found.items() if value is not None}
    # The folders of the machine are of no use to others.
    command = re.sub(r" --(root|run-dir|base) \S+| --overwrite", "", begun["command"])
    run |= {"seconds": "" if isnan(seconds) else round(seconds), "command": command}
    return {**run, "settings": describe(options), **figures}


def add(run: dict[str, Any], results: Path = RESULTS) -> None:
    path = results / "runs.csv"
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(run)


def add_cell(run: dict[str, Any], results: Path = RESULTS) -> None:
    """Writes a cell of the matrix in the place of an earlier one."""
    others = [cell for cell in read("matrix.csv", results) if any(cell[name] != run[name] for name in CELL)]
    with (results / "matrix.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, CELL_COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, run])


def read(name: str, results: Path = RESULTS) -> list[dict[str, str]]:
    with (results / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def zoo_table(results: Path = RESULTS) -> str:
    """Models that learnt all steps at once, beside the published figures."""
    published = {(row["dataset"], row["model"]): row for row in read("published.csv", results)}
    header = ["dataset", "model", *JOINT, "published MRR", "settings", "CPU minutes"]
    lines = []
    for run in read("runs.csv", results):
        if run["MRR"]:
            theirs = published.get((run["dataset"], run["model"]), {}).get("MRR", "–")
            minutes = f"{int(run['seconds']) / 60:.1f}" if run["seconds"] else "–"
            figures = [run[name] for name in JOINT]
            settings = _only(run["settings"], JOINT_SETTINGS)
            lines.append([run["dataset"], run["model"], *figures, theirs, settings, minutes])
    return _markdown(header, sorted(lines, key=lambda line: (line[0], -float(line[2]))))


def incremental_table(results: Path = RESULTS) -> str:
    """Models that learnt step by step."""
    header = ["dataset", "model", "strategy", "ended facts", "seed", *INCREMENTAL, "settings", "CPU seconds"]
    lines = []
    for run in read("runs.csv", results):
        if run["C@10"]:
            ended = "excluded" if run["settings"].endswith(EXCLUDED) else "ranked"
            settings = _only(run["settings"], INCREMENTAL_SETTINGS)
            which = [run["dataset"], run["model"], run["strategy"], ended, run["seed"]]
            lines.append([*which, *(_figure(run[name]) for name in INCREMENTAL), settings, run["seconds"]])
    return _markdown(header, sorted(lines, key=lambda line: line[:5]))


def matrix_table(dataset: str, results: Path = RESULTS) -> str:
    """The cells of one dataset: models × strategies, with the same short training."""
    names = ("C@10", "A@10", "DF@10", "RRD", "BWT", "seconds")
    cells = [cell for cell in read("matrix.csv", results) if cell["dataset"] == dataset]
    cells.sort(key=lambda cell: (cell["model"], STRATEGIES.index(cell["strategy"])))
    lines = [[cell["model"], cell["strategy"], *(_figure(cell[name]) for name in names)] for cell in cells]
    return _markdown(["model", "strategy", *names[:-1], "CPU seconds"], lines)


def fill(page: Path = PAGE, results: Path = RESULTS) -> str:
    """The text of the page with its tables."""

    def made(name: str) -> str:
        if name.startswith("matrix"):
            return matrix_table(name.split()[1], results)
        return zoo_table(results) if name == "zoo" else incremental_table(results)

    return REGION.sub(lambda found: found[1] + made(found[2]) + found[3], page.read_text(encoding="utf-8"))


def _only(settings: str, names: tuple[str, ...]) -> str:
    """The settings of some names: ``width 128`` of ``width 128, epochs 4``."""
    return ", ".join(part for part in settings.split(", ") if part.rpartition(" ")[0] in names)


def _figure(text: str) -> str:
    return text.replace("-", "−") or "–"


def _markdown(header: list[str], lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in [header, ["---"] * len(header), *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, help="folder of a run to add")
    parser.add_argument("--seconds", type=float, default=float("nan"), help="CPU seconds of the run")
    parser.add_argument("--matrix", action="store_true", help="the run is a cell of the matrix")
    options = parser.parse_args()
    if options.run is not None:
        (add_cell if options.matrix else add)(read_run(options.run, options.seconds))
    PAGE.write_text(fill(), encoding="utf-8")


if __name__ == "__main__":
    main()
