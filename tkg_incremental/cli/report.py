"""``report``: the page of a run."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command, add_run
from tkg_incremental.cli.errors import OK, UsageError
from tkg_incremental.cli.opened import open_result

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
    open_result(args.run_dir)  # says what is wrong, if anything is
    path = write_report_of(args.run_dir)
    if path is None:
        raise UsageError("reports need the package matplotlib: pip install 'tkg-incremental[report]'")
    print(path)
    if args.open:
        webbrowser.open(path.absolute().as_uri())
    return OK


def write_report_of(run_dir: Path) -> Path | None:
    """Writes the report of a run and says where it is, unless what that takes is not installed."""
    try:
        from tkg_incremental.report import write_report
    except ImportError:
        return None
    return Path(write_report(run_dir))
