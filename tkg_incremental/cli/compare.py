"""``compare``: several runs in a table per dataset, and their curves on one page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import OK, BadDataError
from tkg_incremental.cli.run_io import is_unfinished, open_config, open_result
from tkg_incremental.tables import format_table, without_nan
from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.report.groups import Group

DESCRIPTION = """
Put several runs side by side: each metric's mean over the steps, in a table per dataset. Runs that
differ by their seed alone share a line, mean ± standard deviation. With --html also curves step by
step, on one self-contained page. Folders without results are skipped with a warning.

C@10, A@10, MRR and RRD: higher is better. DF@10 (deleted facts among the first ten answers) and
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
    parser.add_argument("--json", action="store_true", help="the tables as JSON")


def run(args: argparse.Namespace) -> int:
    by_dataset = open_groups(args.run_dirs, args.parser.prog)
    from tkg_incremental.report.comparison import summary_table, write_comparison

    if args.json:
        groups = [group for each in by_dataset.values() for group in each]
        print(json.dumps([as_json(group) for group in groups]))
    else:
        tables = []
        for title, groups in by_dataset.items():
            heading = f"{printable(title)}\n" if len(by_dataset) > 1 else ""
            tables.append(heading + format_table(*summary_table(groups)))
        print("\n\n".join(tables))
    if args.html is not None:
        write_comparison(by_dataset, args.html)
        if not args.json:
            print(f"\nCurves in {args.html}")
    return OK


def open_groups(folders: list[Path], program: str) -> dict[str, list[Group]]:
    """The runs in groups, by the name of their dataset."""
    from tkg_incremental.report.groups import group_runs

    runs = []
    for folder in dict.fromkeys(folders):
        result = None if is_unfinished(folder) else open_result(folder)
        if result is None or not result.steps:
            is_joint = result is not None and result.link_prediction
            why = "it learnt all steps at once, so that no step has results" if is_joint else "it has no results yet"
            print(printable(f"{program}: warning: '{folder}' is skipped: {why}"), file=sys.stderr)
        else:
            runs.append((folder, result, open_config(folder)))
    if not runs:
        raise BadDataError("none of the folders has results of steps to compare")
    try:
        return group_runs(runs)
    except ValueError as error:  # a damaged run.json
        raise BadDataError(str(error)) from None


def as_json(group: Group) -> dict[str, object]:
    from tkg_incremental.training.result import SUMMARY

    summary = {metric: group.summary(metric) for metric in SUMMARY}
    about = {
        "run": group.label,
        "dataset": group.dataset,
        "folders": [str(folder) for folder in group.folders],
        "seeds": [result.seed for result in group.results],
        "mean": {metric: mean for metric, (mean, _) in summary.items()},
        "std": {metric: std for metric, (_, std) in summary.items()},
    }
    return dict(without_nan(about))
