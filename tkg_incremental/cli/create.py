"""``create``: make a live graph of a file of facts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command, columns, positive, seed
from tkg_incremental.cli.errors import OK, BadDataError
from tkg_incremental.cli.graph_io import add_graph, add_json, print_json, print_report

DESCRIPTION = """
Make a live graph of a file of facts: a folder with a fact store and a model that knows every fact.
`update` then applies each day's changes. The settings are in graph.toml, to be edited.
"""
EXAMPLES = """
tkg-incremental create graphs/company --facts facts.csv --unit day
tkg-incremental create graphs/company --facts facts.csv --columns head=Employee,rel=Role,tail=Team,start=From
"""
UNITS = ("auto", "hour", "day", "week", "month", "quarter", "year", "index")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "create", "make a live graph", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    parser.add_argument("--facts", metavar="FILE", type=Path, required=True, help="CSV, TSV, JSON lines or Parquet")
    parser.add_argument("--unit", choices=UNITS, default="auto", help="unit of time (found from the dates)")
    parser.add_argument(
        "--columns", type=columns, metavar="LIST", help="head=Employee,rel=Role,…: which column is which"
    )
    parser.add_argument("--delimiter", metavar="CHARACTER", help="what separates the fields")
    parser.add_argument("--dayfirst", action="store_true", help="read 03/04/2024 as 3 April")
    parser.add_argument("--date-format", metavar="FORMAT", help="format of all dates, as of strptime; unix, unix_ms")
    parser.add_argument("--keep-outliers", action="store_true", help="accept dates far from all others")
    parser.add_argument("--model", metavar="NAME", help="the model (TNTComplEx)")
    parser.add_argument("--hidden-channels", type=positive, metavar="N", help="width of its vectors (128)")
    parser.add_argument("--epochs", type=positive, metavar="N", help="epochs of the first training (40)")
    parser.add_argument("--seed", type=seed, metavar="N", help="seed of everything random (0)")
    parser.add_argument("--no-train", action="store_true", help="only import the facts; LiveGraph.train() trains")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from tkg_incremental.datasets.options import ReadOptions
    from tkg_incremental.live.graph import LiveGraph
    from tkg_incremental.live.learning import LiveSettings

    named = dict(part.partition("=")[::2] for part in args.columns.split(",")) if args.columns else None
    given = {"name": args.model, "hidden_channels": args.hidden_channels, "epochs": args.epochs, "seed": args.seed}
    try:
        read = ReadOptions(
            columns=named and {key.strip(): value.strip() for key, value in named.items()},
            delimiter=args.delimiter,
            dayfirst=args.dayfirst,
            date_format=args.date_format,
            outliers="keep" if args.keep_outliers else "error",
        )
        settings = LiveSettings.from_tables({key: value for key, value in given.items() if value is not None})
        settings.check()
        graph = LiveGraph.create(args.graph, args.facts, args.unit, read, settings)
    except ValueError as error:
        raise BadDataError(str(error)) from error
    with graph:
        store, folder = graph.folder.store, graph.folder
        print(f"unit of time: {store.unit} ({folder.settings['graph']['unit_reason']})", file=sys.stderr)
        if not args.no_train:
            return print_report(graph.train(), args.json)
        about = {"facts": store.num_facts, "entities": store.num_entities, "relations": store.num_relations}
        if args.json:
            print_json({"state": "created", **about})
        else:
            print(", ".join(f"{count} {name}" for name, count in about.items()))
    return OK
