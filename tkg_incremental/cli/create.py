"""``create``: make a live graph of a file of facts."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tkg_incremental.cli.arguments import Commands, add_command, positive, seed
from tkg_incremental.cli.errors import OK, BadDataError, UsageError
from tkg_incremental.cli.flags import add_option
from tkg_incremental.cli.graph_io import add_graph, add_json, print_json, print_report
from tkg_incremental.cli.options import READING, RunOptions
from tkg_incremental.cli.run_io import open_model

if TYPE_CHECKING:
    from tkg_incremental.live.graph import LiveGraph

DESCRIPTION = """
Make a live graph of a file of facts: a folder with a fact store and a model that knows every fact.
`update` then applies each day's changes. The settings are in graph.toml, to be edited. With
--from-run, the model and the train facts of a run that `train` made are taken over instead.
"""
EXAMPLES = """
tkg-incremental create graphs/company --facts facts.csv --unit day
tkg-incremental create graphs/company --facts facts.csv --columns head=Employee,rel=Role,tail=Team
tkg-incremental create graphs/leaders --from-run runs/demo
"""
SETTINGS = ("name", "hidden_channels", "epochs", "seed")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "create", "make a live graph", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--facts", metavar="FILE", type=Path, help="CSV, TSV, JSON lines or Parquet")
    source.add_argument("--from-run", metavar="RUN", type=Path, help="folder of a run; its model becomes release 0")
    parser.add_argument("--aliases", metavar="FILE", type=Path, help="CSV of further names: alias,name")
    add_json(parser)
    facts = parser.add_argument_group("with --facts")
    for name in ("unit", *READING):
        add_option(facts, name)
    facts.argument_default = argparse.SUPPRESS
    facts.add_argument("--at", metavar="DATE", help="the last step, if later ends are planned (the last date of FILE)")
    facts.add_argument("--model", dest="name", metavar="NAME", help="the model (TNTComplEx)")
    facts.add_argument(
        "--hidden-channels", type=positive, metavar="N", help="width of its vectors (128; more than 3,000 facts: 256)"
    )
    facts.add_argument("--epochs", type=positive, metavar="N", help="epochs of the first training (20)")
    facts.add_argument("--seed", type=seed, metavar="N", help="seed of everything random (0)")
    facts.add_argument("--no-train", action="store_true", help="only import the facts; LiveGraph.train() trains")


def run(args: argparse.Namespace) -> int:
    aliases = read_aliases(args.aliases) if args.aliases else {}
    graph = graph_of_run(args) if args.from_run else graph_of_facts(args)
    with graph:
        store = graph.folder.store
        try:
            graph.add_aliases(aliases)
        except ValueError as error:
            shutil.rmtree(args.graph)  # so that the next try finds no half of a graph
            raise BadDataError(f"{args.aliases}: {error}") from error
        reason, last = graph.folder.settings["graph"]["unit_reason"], graph.show(graph.clock.now)
        print(f"unit of time: {store.unit} ({reason}); the last step is {last}", file=sys.stderr)
        if not (hasattr(args, "no_train") or args.from_run):
            return print_report(graph.train(), args.json)
        about = {"facts": store.num_facts, "entities": store.num_entities, "relations": store.num_relations}
        if args.from_run:
            about["kept"] = graph.history()[0].metrics["kept"]
        if args.json:
            print_json({"state": "released" if args.from_run else "created", **about})
        else:
            kept = about.pop("kept", None)
            first = "" if kept is None else f"; {kept:.1%} of the facts that hold rank first; released as 0"
            print(", ".join(f"{count} {name}" for name, count in about.items()) + first)
    return OK


def graph_of_facts(args: argparse.Namespace) -> LiveGraph:
    from tkg_incremental.live.graph import LiveGraph
    from tkg_incremental.live.live_settings import LiveSettings

    options = RunOptions(**{name: value for name, value in vars(args).items() if name in ("unit", *READING)})
    try:
        settings = LiveSettings.from_tables({name: value for name, value in vars(args).items() if name in SETTINGS})
        settings.check()
        return LiveGraph.create(
            args.graph, args.facts, options.unit, options.read_options(), settings, at=getattr(args, "at", None)
        )
    except ValueError as error:
        raise BadDataError(str(error)) from error


def graph_of_run(args: argparse.Namespace) -> LiveGraph:
    from tkg_incremental.live.graph import LiveGraph

    for name in ("unit", *READING, *SETTINGS, "at", "no_train"):
        if hasattr(args, name):
            flag = "model" if name == "name" else name.replace("_", "-")
            raise UsageError(f"--{flag} goes with --facts; a run has its own")
    open_model(args.from_run)  # says what is missing, and that --resume may help
    try:
        return LiveGraph.from_run(args.graph, args.from_run)
    except ValueError as error:
        raise BadDataError(str(error)) from error


def read_aliases(path: Path) -> dict[str, str]:
    """The aliases of a CSV file with the columns alias and name."""
    from tkg_incremental.datasets.lines import DataError, read_fields

    aliases = {}
    for line, fields in read_fields(path, None, ","):
        if len(fields) != 2:
            raise DataError(path, line, f"expected the columns alias and name (got {fields})")
        aliases[fields[0].strip()] = fields[1].strip()
    if aliases.get("alias") == "name":
        del aliases["alias"]  # the header
    return aliases
