"""Runs any cell of the paper's Tables 2 to 8. `paper_page.py` then writes `docs/results.md`.

    python examples/paper_tables.py --list
    python examples/paper_tables.py --table 2 --dataset Wikidata12k --model DE --seeds 0 1 2 --jobs 2
    python examples/paper_page.py

Every run adds a line to `results/DATASET.csv`; a cell with a line is not run again. An interrupted run is resumed.
Cells of one dataset and model share their base model, for all seeds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from paper_cells import CELLS, Cell
from paper_protocol import make_trainer
from paper_results import BATCHES, Key, add_run, read_runs

from tkg_incremental.ops.memory import keep_freed_memory

REPOSITORY = Path(__file__).resolve().parent.parent


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the cells and which seeds have run")
    parser.add_argument(
        "--table", type=int, nargs="*", help="cells of these tables; 0 for what the paper does not have"
    )
    parser.add_argument("--dataset", nargs="*", help="cells of these datasets")
    parser.add_argument("--model", nargs="*", help="cells of these base models")
    parser.add_argument("--cell", nargs="*", help="cells of these names")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="seeds to run")
    parser.add_argument(
        "--jobs", type=int, default=1, help="cells to run side by side, each with its share of the cores"
    )
    parser.add_argument("--root", default="data", help="folder of the datasets")
    parser.add_argument("--runs", type=Path, default=Path("runs/paper"), help="folder of checkpoints and base models")
    parser.add_argument("--one", nargs=2, metavar=("KEY", "SEED"), help=argparse.SUPPRESS)  # a worker's single cell
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Cell]:
    """The chosen cells."""
    return [
        cell
        for cell in CELLS
        if (options.table is None or set(cell.tables or (0,)) & set(options.table))
        and (options.dataset is None or cell.dataset in options.dataset)
        and (options.model is None or cell.model in options.model)
        and (options.cell is None or cell.name in options.cell)
    ]


def seeds_run(cell: Cell) -> list[int]:
    """Seeds of the cell that were run with the current protocol."""
    runs = read_runs().get(Key(cell.dataset, cell.model, cell.name), [])
    return sorted(int(run["seed"]) for run in runs if run["batches"] == BATCHES)


def base_file(cell: Cell, runs: Path) -> Path:
    return runs / f"{cell.base_key}.pt"


def run(cell: Cell, seed: int, root: str, runs: Path) -> None:
    """Runs one cell and writes its result."""
    keep_freed_memory()
    begin, commit = time.perf_counter(), _commit()
    trainer = make_trainer(cell, seed, root, runs / f"{cell.key}-{seed}")
    if trainer.folder is not None and trainer.folder.checkpoints:
        trainer.resume()
    trainer.pretrain(base_file(cell, runs))
    result = trainer.fit().to_dict()
    steps, summary = result["steps"], result["summary"]
    figures = {name: summary.get(name) for name in ("C@10", "DF@10", "RRD", "MRR", "data_size", "epoch_seconds")}
    figures |= {"A@10": mean_of(steps, "A@10 incremental"), "A@10 all steps": summary.get("A@10")}
    figures |= {name: mean_of(steps, name) for name in ("C@10 new entities", "epochs")}
    which = f"--dataset {cell.dataset} --model {cell.model} --cell '{cell.name}' --seeds {seed}"
    add_run(
        {
            "dataset": cell.dataset,
            "model": cell.model,
            "cell": cell.name,
            "seed": seed,
            "commit": commit,
            **{name: f"{value:.4f}" for name, value in figures.items() if value is not None},
            "batches": BATCHES,
            "minutes": round((time.perf_counter() - begin) / 60, 1),
            "command": f"python examples/paper_tables.py {which}",
        }
    )


def mean_of(steps: list[dict[str, Any]], name: str) -> float | None:
    values = [value for step in steps if (value := step.get(name)) is not None]
    return sum(values) / len(values) if values else None


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def run_all(options: argparse.Namespace) -> None:
    todo = [(cell, seed) for seed in options.seeds for cell in chosen(options) if seed not in seeds_run(cell)]
    threads = max(1, (os.cpu_count() or 1) // options.jobs)
    environment = {"OMP_NUM_THREADS": str(threads), **os.environ}

    def work(task: tuple[Cell, int]) -> None:
        cell, seed = task
        print(f"{cell.key}, seed {seed}", flush=True)
        shared = ["--root", options.root, "--runs", str(options.runs)]
        subprocess.run([sys.executable, __file__, "--one", cell.key, str(seed), *shared], env=environment, check=True)

    # The first cell of a base model trains it and the others load it, so base models come first.
    first: dict[Path, tuple[Cell, int]] = {}
    for cell, seed in todo:
        base = base_file(cell, options.runs)
        if not base.exists():
            first.setdefault(base, (cell, seed))
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, first.values()))
        list(pool.map(work, [task for task in todo if task not in first.values()]))


def main() -> None:
    options = parse_arguments()
    if options.one:
        key, seed = options.one
        run(next(cell for cell in CELLS if cell.key == key), int(seed), options.root, options.runs)
        return
    if options.list:
        for cell in chosen(options):
            seeds = seeds_run(cell)
            tables = ", ".join(map(str, cell.tables)) or "–"
            print(f"{tables:13} {cell.dataset:12} {cell.model:5} {cell.name:32} seeds run: {seeds or 'none'}")
        return
    run_all(options)


if __name__ == "__main__":
    main()
