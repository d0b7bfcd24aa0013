"""``evaluate``: the metrics of a saved model."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tkg_incremental.cli.arguments import Commands, add_command, add_run, one_of, positive
from tkg_incremental.cli.errors import OK, BadDataError, UsageError
from tkg_incremental.cli.flags import add_option, add_options
from tkg_incremental.cli.options import OPTIONS, RunOptions
from tkg_incremental.cli.run_io import check_folder, open_model, open_result
from tkg_incremental.tables import format_table, without_nan

if TYPE_CHECKING:
    from tkg_incremental.data.catalog import Catalog
    from tkg_incremental.datasets import TKGDataset

DESCRIPTION = """
Compute the metrics of a run's saved model again: of the model after the run's last step, on the
facts of that step (C, DF, RRD, MRR, Hits) and of all steps so far (A). By default on the test
facts of the run's dataset.
"""
EXAMPLES = """
tkg-incremental evaluate runs/demo
tkg-incremental evaluate runs/demo --split val --json
tkg-incremental evaluate runs/mine --facts train.tsv --test new.tsv    # other facts, same names
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "evaluate", "compute a run's metrics again", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("--split", type=one_of(["test", "val"]), default="test", help="which facts: test or val (test)")
    parser.add_argument("--at", metavar="DATE", help="the step to ask about (the last one of the run)")
    parser.add_argument("--window", type=positive, default=10, help="steps that deleted facts reach back (10)")
    parser.add_argument(
        "--per-query", action="store_true", help="count deleted facts once per query, as the released TIE code does"
    )
    parser.add_argument(
        "--no-repeats", action="store_true", help="count repeated facts once, as the released TIE code does"
    )
    parser.add_argument(
        "--exclude-ended",
        action=argparse.BooleanOptionalAction,
        help="rank answers that have ended, by the train facts, behind all others (as the run did)",
    )
    parser.add_argument("--json", action="store_true", help="metrics as JSON")
    add_option(parser, "device")
    add_options(parser.add_argument_group("facts", "By default those of the run."), "data")


def run(args: argparse.Namespace) -> int:
    check_folder(args.run_dir)
    options = data_options(args)
    from tkg_incremental.cli.run import check_device, open_dataset
    from tkg_incremental.communicator import LOCAL
    from tkg_incremental.metrics import Evaluator

    device = getattr(args, "device", "auto")
    check_device(device)
    model, catalog = open_model(args.run_dir, str(LOCAL.device(device)))
    dataset = open_dataset(options)
    check_names(catalog, dataset, args.run_dir)
    timeline = dataset.timeline.to(model.device)
    if not len(timeline.split(args.split).facts):
        raise BadDataError(f"there are no {args.split} facts to evaluate on: --holdout of train withholds some")
    step = last_step(args.run_dir, timeline.num_steps) if args.at is None else step_of(catalog, args.at)
    evaluator = Evaluator(
        timeline,
        args.split,
        args.window,
        args.per_query,
        count_repeats=not args.no_repeats,
        exclude_ended=open_result(args.run_dir).exclude_ended if args.exclude_ended is None else args.exclude_ended,
    )
    metrics, _ = evaluator.evaluate(model, step)
    if args.json:
        asked = {"time": step, "label": timeline.labels[step], "split": args.split}
        print(json.dumps(without_nan({**asked, "exclude_ended": evaluator.exclude_ended, **metrics})))
    else:
        excluded = " · ended facts excluded" if evaluator.exclude_ended else ""
        title = f"{type(model).__name__} · {type(dataset).__name__} · {args.split} facts · {timeline.labels[step]}"
        print(title + excluded)
        print(format_table(["metric", "value"], list(metrics.items())))
    return OK


def data_options(args: argparse.Namespace) -> RunOptions:
    """The run's own dataset, or the one of the flags."""
    names = [name for name, each in OPTIONS.items() if each.metadata["group"] == "data"]
    given = {name: value for name, value in vars(args).items() if name in names}
    if "dataset" in given and "facts" in given:
        raise UsageError("give either --dataset or --facts, and not both")
    if "dataset" in given or "facts" in given:
        options = RunOptions(**given)
    else:
        options = replace(RunOptions.load(args.run_dir), **given)
    options.refuse_unused(given)
    return options


def check_names(catalog: Catalog, dataset: TKGDataset, run_dir: Path) -> None:
    """Refuses a dataset whose ids stand for other names than the model's."""
    pairs = {
        "entities": (catalog.entities.names, dataset.entity_names),
        "relations": (catalog.relations.names, dataset.relation_names),
        "steps": (catalog.axis.labels, dataset.timeline.labels),
    }
    for what, (of_run, of_dataset) in pairs.items():
        if of_run != of_dataset:
            raise BadDataError(
                f"the {what} of {dataset} are not those the model in '{run_dir}' was trained with "
                f"({len(of_run)} there, {len(of_dataset)} here)"
            )


def last_step(run_dir: Path, num_steps: int) -> int:
    result = open_result(run_dir)
    return int(result.steps[-1]["time"]) if result.steps else num_steps - 1


def step_of(catalog: Catalog, when: str) -> int:
    try:
        return catalog.axis.step_of(when)
    except ValueError as error:
        raise BadDataError(f"--at: {error}") from None
