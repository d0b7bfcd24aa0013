"""``update``: apply changes to a live graph."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import UsageError
from tkg_incremental.cli.flags import add_option
from tkg_incremental.cli.graph_io import add_graph, add_json, open_graph, print_report
from tkg_incremental.cli.options import READING, RunOptions

if TYPE_CHECKING:
    from tkg_incremental.datasets.options import ReadOptions

DESCRIPTION = """
Apply changes to a live graph: validate them, learn them, and release the model if it passes the
gate. A file has the columns op, head, rel, tail and at, or names them as the file of create did.
The op says what happens at that time: add (the fact begins), end (it no longer holds, from then on),
retract (it was never true). Without a file, changes that are pending are learnt again; if there are
none, only the clock moves.

exit codes: 0 released, 3 lines were rejected and nothing was applied, 4 refused by the gate: the
release before goes on answering, and the changes are part of the next update.
"""
EXAMPLES = """
tkg-incremental update graphs/company changes.csv
tkg-incremental update graphs/company changes.csv --dry-run
tkg-incremental update graphs/company --full facts-of-today.csv --at 2026-11-18
tkg-incremental update graphs/company --full export.csv --columns head=Employee,rel=Role,tail=Team
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "update", "apply changes to a live graph", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    parser.add_argument("changes", metavar="CHANGES", type=Path, nargs="?", help="CSV, TSV, JSON lines or Parquet")
    parser.add_argument("--full", metavar="FILE", type=Path, help="a new full export: the differences are the changes")
    parser.add_argument("--at", metavar="DATE", help="date of changes without one (the step after the last)")
    parser.add_argument("--dry-run", action="store_true", help="only validate the changes")
    parser.add_argument("--force", action="store_true", help="release even if the gate refuses")
    parser.add_argument(
        "--skip-rejected", action="store_true", help="apply the valid lines even if others are rejected"
    )
    add_json(parser)
    reading = parser.add_argument_group("files (by default read as the one that create was given)")
    for name in READING:
        add_option(reading, name)


def reading(settings: dict[str, Any], given: dict[str, Any]) -> ReadOptions:
    """How files are read: as the graph's settings say, except for the flags that are given."""
    from tkg_incremental.live.reading import from_tables

    options = RunOptions(**given).read_options()
    names = ["outliers" if name == "keep_outliers" else name for name in given]
    changed = {name: getattr(options, name) for name in names}
    if changed.keys() & {"dayfirst", "date_format"}:  # one replaces the other
        changed = {"dayfirst": False, "date_format": None, **changed}
    return replace(from_tables(settings), **changed)


def run(args: argparse.Namespace) -> int:
    if args.changes is not None and args.full is not None:
        raise UsageError("only one of CHANGES and --full must be given")
    given = {name: value for name, value in vars(args).items() if name in READING}
    if given and args.changes is None and args.full is None:
        raise UsageError(f"--{next(iter(given)).replace('_', '-')} goes with CHANGES or --full")
    with open_graph(args.graph) as graph:
        report = graph.update(
            args.changes,
            full=args.full,
            read=reading(graph.folder.settings, given),
            at=args.at,
            dry_run=args.dry_run,
            force=args.force,
            skip_rejected=args.skip_rejected,
        )
    return print_report(report, args.json)
