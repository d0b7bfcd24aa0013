"""``rollback``: make an earlier release of a live graph answer again."""

from __future__ import annotations

import argparse

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.graph_io import add_graph, add_json, open_graph, print_json

DESCRIPTION = """
Make an earlier release of a live graph answer again, with the facts it knew. Pending changes are
discarded; with the number of the current release, nothing else happens. Later releases stay. A
release that was pruned (see history) is refused.
"""
EXAMPLES = """
tkg-incremental rollback graphs/company 3
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "rollback", "go back to an earlier release", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    parser.add_argument("release", metavar="RELEASE", type=int, help="its number, see history")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    with open_graph(args.graph) as graph:
        before = graph.current
        graph.rollback(args.release)
        until = graph.show(graph.clock.now)
    if args.json:
        print_json({"release": args.release, "before": before, "until": until})
    else:
        print(f"release {args.release} answers, with the facts until {until}")
    return OK
