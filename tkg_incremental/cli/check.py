"""``check``: whether a fact holds."""

from __future__ import annotations

import argparse

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import OK, UsageError
from tkg_incremental.cli.graph_io import add_as_of, add_graph, add_json, open_graph, print_json
from tkg_incremental.text import printable

DESCRIPTION = """
The probability that a fact of a live graph holds at a time, and whether it is known.
"""
EXAMPLES = """
tkg-incremental check graphs/company "Ann" leads "R&D" --at 2026-11-18
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "check", "whether a fact holds", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    add_fact(parser)
    parser.add_argument("--at", metavar="DATE", help="when (the last step)")
    add_as_of(parser)
    add_json(parser)


def add_fact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("head", metavar="HEAD", help="name of the head")
    parser.add_argument("rel", metavar="REL", help="name of the relation")
    parser.add_argument("tail", metavar="TAIL", help="name of the tail")


def fact_of(args: argparse.Namespace) -> tuple[str, str, str]:
    """Head, relation and tail."""
    if "?" in (args.head, args.rel, args.tail):
        raise UsageError(
            f'HEAD, REL and TAIL must be names; query asks for a "?" (got {args.head!r} {args.rel!r} {args.tail!r})'
        )
    return args.head, args.rel, args.tail


def run(args: argparse.Namespace) -> int:
    fact = fact_of(args)
    with open_graph(args.graph) as graph:
        answer = graph.check(*fact, args.at, args.as_of)
    if args.json:
        print_json({key: value for key, value in answer.to_dict().items() if key != "name"})
        return OK
    known = f"known {answer.period}" if answer.known else answer.period or "not known"
    probability = "" if answer.probability is None else f" · probability {answer.probability:.0%}"
    print(printable(f"{args.head} · {args.rel} · {args.tail}: {known}{probability} · score {answer.score:.2f}"))
    return OK
