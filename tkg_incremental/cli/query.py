"""``query``: ask a trained model, at one time or at several side by side."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import TYPE_CHECKING

from tkg_incremental.cli.arguments import Commands, add_command, add_run, positive
from tkg_incremental.cli.errors import OK, BadDataError, UsageError
from tkg_incremental.cli.graph_io import add_as_of, answer_row, is_graph, open_graph, print_json
from tkg_incremental.cli.run_io import open_model
from tkg_incremental.tables import format_table
from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.answers import Answer

DESCRIPTION = """
Ask a trained model what completes a fact at a given time: "?" marks the head, the tail or the
relation that is asked for. Only the folder of the run or graph is needed. An unknown name gets the nearest known ones.
Known answers come first, with the time since when they hold.
"""
EXAMPLES = """
tkg-incremental query runs/demo "?" "president of" "United States" --at 2021 -k 5
tkg-incremental query runs/demo "?" "president of" "United States" --at 2016 --at 2018 --at 2022
tkg-incremental query runs/demo "Angela Merkel" "member of party" "?" --at 2010 --json
tkg-incremental query runs/demo "Angela Merkel" "?" Germany --at 2010
tkg-incremental query graphs/company "?" leads "R&D" --predicted-only
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "query", "ask a trained model", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("head", metavar="HEAD", help='name of the head, or "?"')
    parser.add_argument("rel", metavar="REL", help='name of the relation, or "?"')
    parser.add_argument("tail", metavar="TAIL", help='name of the tail, or "?"')
    parser.add_argument(
        "--at",
        metavar="DATE",
        action="append",
        help="a year or a date YYYY-MM-DD, as in the dataset; several are shown side by side (a graph: its last step)",
    )
    parser.add_argument("-k", type=positive, default=10, metavar="N", help="number of answers (10)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--known-only", action="store_true", help="only facts of the graph (graph folders)")
    only.add_argument("--predicted-only", action="store_true", help="only predictions (graph folders)")
    add_as_of(parser)
    parser.add_argument(
        "--any-type", action="store_true", help="rank all entities, not only those seen on that side of the relation"
    )
    parser.add_argument("--json", action="store_true", help="answers as JSON, with scores, probabilities and intervals")


def run(args: argparse.Namespace) -> int:
    if [args.head, args.rel, args.tail].count("?") != 1:
        raise UsageError(
            f'exactly one of HEAD, REL and TAIL must be "?" (got {args.head!r} {args.rel!r} {args.tail!r})'
        )
    if is_graph(args.run_dir):
        return query_graph(args)
    if not args.at:
        raise UsageError("the following arguments are required: --at")
    for flag in ("known_only", "predicted_only", "as_of"):
        if getattr(args, flag) not in (None, False):
            raise UsageError(f"--{flag.replace('_', '-')} needs the folder of a graph (got '{args.run_dir}')")
    model, catalog = open_model(args.run_dir)
    head, rel, tail = (None if name == "?" else name for name in (args.head, args.rel, args.tail))
    steps, answers = {}, {}
    try:
        for when in args.at:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                answers[when] = model.query(head, rel, tail, when, args.k, args.any_type)
                steps[when] = catalog.axis.labels[model.answers.step_of(when)]
            for message in sorted({str(warning.message) for warning in caught}):
                print(message, file=sys.stderr)
    except KeyError as error:  # a name that is not there
        raise BadDataError(error.args[0]) from None
    except ValueError as error:  # a date outside of the dataset
        raise BadDataError(f"--at: {error}") from None
    if args.json:
        print(json.dumps({when: [answer.to_dict() for answer in found] for when, found in answers.items()}))
        return OK
    print(printable(f"{args.head} · {args.rel} · {args.tail}"))
    print(side_by_side(steps, answers))
    return OK


def query_graph(args: argparse.Namespace) -> int:
    """Asks a live graph: known answers, then predictions, then what is over, each with its probability."""
    head, rel, tail = (None if name == "?" else name for name in (args.head, args.rel, args.tail))
    only = "known" if args.known_only else "predicted" if args.predicted_only else None
    with open_graph(args.run_dir) as graph:
        times = args.at or [graph.engine_as_of(args.as_of).axis.labels[-1]]
        choice = {"any_type": args.any_type, "only": only, "as_of": args.as_of}
        answers = {when: graph.query(head, rel, tail, when, args.k, **choice) for when in times}
    if args.json:
        print_json({when: [answer.to_dict() for answer in found] for when, found in answers.items()})
        return OK
    for when, found in answers.items():
        print(printable(f"{args.head} · {args.rel} · {args.tail} at {when}"))
        rows: list[list[str | float]] = [[place, *answer_row(answer)] for place, answer in enumerate(found, 1)]
        print(format_table(["", "answer", "probability", "known"], rows) if rows else "no answers")
    return OK


def side_by_side(steps: dict[str, str], answers: dict[str, list[Answer]]) -> str:
    """A table with the answers of each time, best first: probability, if there is a calibration, and the
    interval of known facts."""
    header = [""]
    for when, label in steps.items():
        header += [when if when == label else f"{when} ({label})", "probability", "known"]
    rows: list[list[str | float]] = []
    for place in range(max(map(len, answers.values()))):
        row: list[str | float] = [place + 1]
        for found in answers.values():
            row += answer_row(found[place]) if place < len(found) else ["", "", ""]
        rows.append(row)
    return format_table(header, rows)
