"""``report``: the page of a run."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command, add_run
from tkg_incremental.cli.errors import OK, BadDataError
from tkg_incremental.cli.graph_io import is_graph, open_graph
from tkg_incremental.cli.run_io import open_result

DESCRIPTION = """
Write report.html into the folder of a run: one self-contained page with the metrics step by step,
what was forgotten, what changed, and the meaning of each figure. Training writes it, too.
In the folder of a live graph, history.html: its updates, and what the gate said about each.
"""
EXAMPLES = """
tkg-incremental report runs/demo
tkg-incremental report runs/demo --open     # and show it in the browser
tkg-incremental report graphs/company
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "report", "write the page of a run", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def run(args: argparse.Namespace) -> int:
    path = history_of(args.run_dir) if is_graph(args.run_dir) else report_of(args.run_dir)
    print(path)
    if args.open and not webbrowser.open(path.absolute().as_uri()):
        print(f"{args.parser.prog}: no browser found; open the file above in one", file=sys.stderr)
    return OK


def report_of(run_dir: Path) -> Path:
    """Writes the report of a run and returns its path."""
    open_result(run_dir)  # for the error, if the metrics are damaged
    from tkg_incremental.report import write_report

    try:
        return write_report(run_dir)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise BadDataError(f"a file in '{run_dir}' is damaged or of another version: {error!r}") from error


def history_of(folder: Path) -> Path:
    """Writes the history of a live graph and returns its path."""
    from tkg_incremental.report.history import write_history

    with open_graph(folder) as graph:
        return write_history(graph)
