"""``query``: ask a trained model, at one time or at several side by side."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from tkg_incremental.cli.arguments import Commands, add_command, add_run, positive
from tkg_incremental.cli.errors import OK, BadDataError, UsageError
from tkg_incremental.cli.run_io import open_model
from tkg_incremental.tables import format_table
from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.models import Answer

DESCRIPTION = """
Ask a trained model which entity completes a fact at a given time. "?" marks the side that is
asked for. Only the run folder is needed. An unknown name gets the nearest known ones.
"""
EXAMPLES = """
tkg-incremental query runs/demo "?" "president of" "United States" --at 2021 -k 5
tkg-incremental query runs/demo "?" "president of" "United States" --at 2016 --at 2018 --at 2022
tkg-incremental query runs/demo "Angela Merkel" "member of party" "?" --at 2010 --json
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "query", "ask a trained model", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("head", metavar="HEAD", help='name of the head, or "?"')
    parser.add_argument("rel", metavar="REL", help="name of the relation")
    parser.add_argument("tail", metavar="TAIL", help='name of the tail, or "?"')
    parser.add_argument(
        "--at",
        metavar="DATE",
        action="append",
        required=True,
        help="a year or a date YYYY-MM-DD, as in the dataset; several are shown side by side",
    )
    parser.add_argument("-k", type=positive, default=10, metavar="N", help="number of answers (10)")
    parser.add_argument("--json", action="store_true", help="answers and scores as JSON")


def run(args: argparse.Namespace) -> int:
    if (args.head == "?") == (args.tail == "?") or args.rel == "?":
        raise UsageError(f'exactly one of HEAD and TAIL must be "?" (got {args.head!r} {args.rel!r} {args.tail!r})')
    model, catalog = open_model(args.run_dir)
    head, tail = (None if name == "?" else name for name in (args.head, args.tail))
    try:
        answers = {when: model.query(head, args.rel, tail, when, k=args.k) for when in args.at}
    except KeyError as error:  # an unknown name
        raise BadDataError(error.args[0]) from None
    except ValueError as error:  # a date outside of the dataset
        raise BadDataError(f"--at: {error}") from None
    if args.json:
        print(json.dumps({when: [answer._asdict() for answer in found] for when, found in answers.items()}))
        return OK
    print(printable(f"{args.head} · {args.rel} · {args.tail}"))
    print(side_by_side({when: catalog.axis.labels[catalog.axis.step_of(when)] for when in answers}, answers))
    return OK


def side_by_side(steps: dict[str, str], answers: dict[str, list[Answer]]) -> str:
    """A table with the answers at each time, best first, and their scores."""
    header = [""]
    for when, label in steps.items():
        header += [when if when == label else f"{when} ({label})", "score"]
    rows: list[list[str | float]] = []
    for place in range(max(map(len, answers.values()))):
        row: list[str | float] = [place + 1]
        for found in answers.values():
            row += [found[place].name, found[place].score] if place < len(found) else ["", ""]
        rows.append(row)
    return format_table(header, rows)
