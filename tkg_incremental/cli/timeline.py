"""``timeline``: the probability of a fact over time."""

from __future__ import annotations

import argparse

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.check import add_fact, fact_of
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.graph_io import add_as_of, add_graph, add_json, open_graph, print_json
from tkg_incremental.tables import format_table, show_share
from tkg_incremental.text import printable

DESCRIPTION = """
The probability of a fact of a live graph over time, and when it is known to hold.
"""
EXAMPLES = """
tkg-incremental timeline graphs/company "Ann" leads "R&D"
"""
ROWS = 20


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "timeline", "the probability of a fact over time", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    add_fact(parser)
    add_as_of(parser)
    parser.add_argument("--all", action="store_true", help=f"every step (about {ROWS}, and those where it changes)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    fact = fact_of(args)
    with open_graph(args.graph) as graph:
        points = graph.timeline(*fact, args.as_of)
    if args.json:
        keys = ("label", "probability", "score", "known")
        print_json([{key: getattr(point, key) for key in keys} for point in points])
        return OK
    every = 1 if args.all else max(1, len(points) // ROWS)
    shown = [
        point
        for i, point in enumerate(points)
        if i % every == 0 or i == len(points) - 1 or point.known != points[i - 1].known
    ]
    print(printable(f"{args.head} · {args.rel} · {args.tail}"))
    rows: list[list[str | float]] = [
        [p.label, show_share(p.probability), p.score, "known" if p.known else ""] for p in shown
    ]
    print(format_table(["at", "probability", "score", ""], rows))
    return OK
