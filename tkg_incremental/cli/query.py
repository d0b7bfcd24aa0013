"""``query``: ask a trained model, at one time or at several."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from tkg_incremental.cli.arguments import Commands, add_command, add_run, positive
from tkg_incremental.cli.errors import OK, UsageError
from tkg_incremental.cli.graph_io import add_as_of, answer_row, bad_data, is_graph, open_graph, print_json
from tkg_incremental.cli.run_io import open_model
from tkg_incremental.tables import format_table
from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.answers import Answer

# By time as it was given: the label of its step, and the answers.
Answers: TypeAlias = "dict[str, tuple[str, list[Answer]]]"

DESCRIPTION = """
Ask a trained model what completes a fact at a given time: "?" marks the head, the tail or the
relation that is asked for. Only the folder of the run or graph is needed. Known answers come first,
with the time since when they hold. For an unknown name, the nearest known ones are printed.
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
        help="a year or a date YYYY-MM-DD, as in the dataset; may be given several times (the last step)",
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
    answers = ask_graph(args) if is_graph(args.run_dir) else ask_run(args)
    if args.json:
        print_json({when: [answer.to_dict() for answer in found] for when, (_, found) in answers.items()})
        return OK
    for when, (label, found) in answers.items():
        at = when if when == label else f"{when} ({label})"
        print(printable(f"{args.head} · {args.rel} · {args.tail} at {at}"))
        print(answer_table(found))
    return OK


def ask_run(args: argparse.Namespace) -> Answers:
    """Asks the model of a run."""
    for flag in ("known_only", "predicted_only", "as_of"):
        if getattr(args, flag) not in (None, False):
            raise UsageError(f"--{flag.replace('_', '-')} needs the folder of a graph (got '{args.run_dir}')")
    model, catalog = open_model(args.run_dir)
    labels = catalog.axis.labels
    with bad_data():
        times = args.at or [labels[-1]]
        answers = {when: model.query(*names_of(args), when, args.k, args.any_type) for when in times}
        return {when: (labels[model.answers.step_of(when)], found) for when, found in answers.items()}


def ask_graph(args: argparse.Namespace) -> Answers:
    """Asks a live graph: known answers, then predictions, then what is over, each with its probability."""
    only = "known" if args.known_only else "predicted" if args.predicted_only else None
    with open_graph(args.run_dir) as graph:
        times = args.at or [graph.engine_as_of(args.as_of).axis.labels[-1]]
        choice = {"any_type": args.any_type, "only": only, "as_of": args.as_of}
        return {when: (when, graph.query(*names_of(args), when, args.k, **choice)) for when in times}


def names_of(args: argparse.Namespace) -> tuple[str | None, str | None, str | None]:
    """Head, relation and tail; :obj:`None` for the one that is asked for."""
    head, rel, tail = (None if name == "?" else name for name in (args.head, args.rel, args.tail))
    return head, rel, tail


def answer_table(answers: Sequence[Answer]) -> str:
    """Answers with their probabilities, if there is a calibration, and the intervals of known ones."""
    if not answers:
        return "no answers"
    header = ["", "answer", "probability", "known"]
    rows = [[place, *answer_row(answer)] for place, answer in enumerate(answers, 1)]
    shown = [column for column in range(4) if column < 2 or any(row[column] for row in rows)]
    return format_table([header[column] for column in shown], [[row[column] for column in shown] for row in rows])
