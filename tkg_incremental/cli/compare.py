"""``compare``: several runs in one table, and their curves on one page."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.curves import comparison_page
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.groups import Group, Spread, group_runs
from tkg_incremental.cli.tables import plain_table
from tkg_incremental.storage import atomic_write
from tkg_incremental.training.result import SUMMARY, show_number

DESCRIPTION = """
Put several runs side by side: each metric's mean over the steps. Runs that differ by their seed
alone share a line, mean ± standard deviation. With --html also curves step by step, on one
self-contained page.

C@10, A@10, MRR and RRD: higher is better. DF@10 (deleted facts that are still believed) and
F@10 (forgetting): lower is better.
"""
EXAMPLES = """
tkg-incremental compare runs/tie runs/ft runs/tr
tkg-incremental compare runs/*-0 runs/*-1 --html comparison.html
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "compare", "put several runs side by side", DESCRIPTION, EXAMPLES, run)
    parser.add_argument("run_dirs", metavar="RUN", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write a page with tables and curves")
    parser.add_argument("--json", action="store_true", help="the table for a program to read")


def run(args: argparse.Namespace) -> int:
    groups = group_runs(args.run_dirs)
    if args.json:
        print(json.dumps([as_json(group) for group in groups], ensure_ascii=False))
    else:
        print(plain_table(*summary_table(groups)))
    if args.html is not None:
        with atomic_write(args.html) as file:
            file.write(comparison_page(groups, *summary_table(groups)).encode())
        if not args.json:
            print(f"\nCurves in {args.html}")
    return OK


def summary_table(groups: list[Group]) -> tuple[list[str], list[list[str | float]]]:
    """Header and rows; the cells that are no numbers are text."""
    header = ["run", "seeds", "steps", *SUMMARY]
    rows: list[list[str | float]] = []
    for group in groups:
        seeds = ", ".join(str(result.seed) for result in group.results)
        steps = "/".join(map(str, sorted({len(result.steps) for result in group.results})))
        rows.append([group.label, seeds, steps, *(show_spread(group.summary(metric)) for metric in SUMMARY)])
    return header, rows


def show_spread(value: Spread) -> str:
    mean = show_number(value.mean)
    return mean if math.isnan(value.std) else f"{mean} ± {show_number(value.std)}"


def as_json(group: Group) -> dict[str, object]:
    summary = {metric: group.summary(metric) for metric in SUMMARY}
    return {
        "run": group.label,
        "folders": [str(folder) for folder in group.folders],
        "seeds": [result.seed for result in group.results],
        "mean": {metric: None if math.isnan(value.mean) else value.mean for metric, value in summary.items()},
        "std": {metric: None if math.isnan(value.std) else value.std for metric, value in summary.items()},
    }
