"""``erase``: remove an entity or a fact from a live graph and all of its releases."""

from __future__ import annotations

import argparse
import sys

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import FAILED, OK, UsageError
from tkg_incremental.cli.graph_io import add_graph, add_json, open_graph, print_json
from tkg_incremental.text import printable

DESCRIPTION = """
Remove an entity or a fact from a live graph: from the fact store, its history and every release.
What is left of its neighbours is learnt again. This cannot be undone. Copies of the folder, such as
backups, are not touched.
"""
EXAMPLES = """
tkg-incremental erase graphs/company "Ann" --yes
tkg-incremental erase graphs/company "Ann" leads "R&D" --yes
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "erase", "remove an entity or a fact", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    parser.add_argument("names", metavar="NAME", nargs="+", help="an entity; or head, relation and tail of a fact")
    parser.add_argument("--yes", action="store_true", help="needed, since it cannot be undone")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if len(args.names) not in (1, 3):
        raise UsageError(f"one name or head, relation and tail must be given (got {len(args.names)} names)")
    if not args.yes:
        raise UsageError("erasing cannot be undone: add --yes")
    with open_graph(args.graph) as graph:
        left = graph.erase(*args.names)
        release = graph.current
        others = graph.folder.store.entities.containing(args.names[0]) if left else []
    if args.json:
        print_json({"release": release, "files_with_the_name": left, "names_with_the_name": others})
    else:
        print(printable(f"erased {' · '.join(args.names)}; release {release} answers"))
    if left and others:
        shown = ", ".join(map(repr, others[:3]))
        text = f"the name is part of {len(others)} other names ({shown}), so that a search for it finds those"
        print(f"note: {printable(text)}", file=sys.stderr)
    elif left:
        print(f"the name still occurs in {', '.join(map(printable, left))}", file=sys.stderr)
        return FAILED
    return OK
