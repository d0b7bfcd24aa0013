"""``report``: the page of a run."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command, add_run
from tkg_incremental.cli.errors import OK, BadDataError
from tkg_incremental.cli.opened import open_result
from tkg_incremental.report import write_report

DESCRIPTION = """
Write report.html into the folder of a run: one self-contained page with the metrics step by step,
what was forgotten, what changed, and what each figure means. Training writes it, too.
"""
EXAMPLES = """
tkg-incremental report runs/demo
tkg-incremental report runs/demo --open     # and show it in the browser
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "report", "write the page of a run", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def run(args: argparse.Namespace) -> int:
    path = report_of(args.run_dir)
    print(path)
    if args.open and not webbrowser.open(path.absolute().as_uri()):
        raise BadDataError(f"there is no browser to open '{path}' with")
    return OK


def report_of(run_dir: Path) -> Path:
    """Writes the report of a run, and says where it is."""
    open_result(run_dir)  # says what is wrong with the metrics, if anything is
    try:
        return write_report(run_dir)
    except (ValueError, KeyError, TypeError) as error:
        raise BadDataError(f"'{run_dir / 'changes.json'}' is damaged or of another version: {error!r}") from error
