"""``train``: learn a dataset step by step."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.config_file import read_config
from tkg_incremental.cli.errors import OK, BadDataError, UsageError
from tkg_incremental.cli.flags import add_train_flags
from tkg_incremental.cli.options import OPTIONS, RunOptions

if TYPE_CHECKING:
    from tkg_incremental.communicator import Communicator

DESCRIPTION = """
Learn a temporal knowledge graph step by step: a base model of the first 70% of the steps,
then one step after the other, with an evaluation after each. The run folder gets metrics.json,
model.pt (with all names, for `query`) and report.html.

With --protocol joint, all steps are learnt at once and the model is evaluated by link prediction:
MRR and Hits@1, 3 and 10 over all test facts.

Ctrl-C stops a run; train --resume --run-dir RUN continues it and needs no other flag.
"""
EXAMPLES = """
tkg-incremental train                                    # world leaders with TIE-DE
tkg-incremental train --dataset YAGO11k --model HyTE --strategy ft --seed 1
tkg-incremental train --facts my.csv --run-dir runs/mine # your own facts, all of them
tkg-incremental train --facts my.csv --holdout 0.1       # a tenth withheld, for metrics
tkg-incremental train --dataset ICEWS14 --model TNTComplEx --protocol joint
tkg-incremental train --config run.toml --epochs 5       # flags override the file
tkg-incremental train --resume --run-dir runs/mine
torchrun --nproc-per-node 4 -m tkg_incremental train --dataset YAGO11k     # four processes

A file for --config has a line for each flag: hidden-channels = 64 (TOML), hidden-channels: 64 (YAML).
"""

# A run may be continued with these changed: they are places, and do not change what is learnt.
PLACES = ("facts", "val", "test", "root", "base", "device", "checkpoint_every")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "train", "learn a dataset step by step", DESCRIPTION, EXAMPLES, run)
    parser.usage = "%(prog)s [--dataset NAME | --facts FILE] [--model NAME] [--strategy NAME] [flag …]"
    add_train_flags(parser)


def run(args: argparse.Namespace) -> int:
    given = merge(args)
    resume, run_dir = hasattr(args, "resume"), given.pop("run_dir", None)
    options = RunOptions.of(given)
    if not resume:
        options.refuse_unused(given)
    run_dir = Path(run_dir or default_run_dir(options))

    from tkg_incremental.cli.outcome import print_result
    from tkg_incremental.cli.progress import watchers
    from tkg_incremental.cli.report import report_of
    from tkg_incremental.cli.run import train
    from tkg_incremental.distributed import LostProcessError, connect
    from tkg_incremental.distributed.communicator import FirstFailedError

    communicator = connect()
    try:
        with ended_by_others(communicator):
            with communicator.first() as is_first:
                options = resumed(run_dir, given) if is_first and resume else options
            options = communicator.broadcast(options)
            overwrite, command = hasattr(args, "overwrite"), shlex.join(["tkg-incremental", *sys.argv[1:]])
            result = train(options, run_dir, watchers(), resume, overwrite, communicator, command)
    except KeyboardInterrupt:
        if communicator.is_first:
            print(f"\nStopped. {how_to_resume(run_dir, communicator)}", file=sys.stderr)
        raise
    except FirstFailedError:
        raise
    except LostProcessError as error:
        raise LostProcessError(f"{error}. {how_to_resume(run_dir, communicator)}") from error
    if communicator.is_first:
        print_result(result, options.facts is not None)
        print(f"\nWritten to {run_dir}: metrics.json, model.pt, {report_of(run_dir).name}")
    communicator.shutdown()
    return OK


def how_to_resume(run_dir: Path, communicator: Communicator) -> str:
    """How a run that was stopped can be continued."""
    from tkg_incremental.cli.run import holds_run

    if communicator.is_first and not holds_run(run_dir):
        return "There is nothing to resume yet."
    several = f"torchrun --nproc-per-node {communicator.size} -m tkg_incremental"
    start = "tkg-incremental" if communicator.size == 1 else several
    also = "" if communicator.size == 1 else "\nwith this or any other number of processes"
    command = f"{start} train --resume --run-dir {shlex.quote(str(run_dir))}"
    return f"This continues the run from its last checkpoint:\n  {command}{also}"


@contextmanager
def ended_by_others(communicator: Communicator) -> Iterator[None]:
    """Turns the signal by which ``torchrun`` ends the remaining processes into an error with the reason."""
    from tkg_incremental.distributed import LostProcessError

    def end(*_: object) -> None:
        place = f"process {communicator.rank} of {communicator.size}"
        raise LostProcessError(f"{place} was terminated, because another one has ended")

    former = signal.signal(signal.SIGTERM, end) if communicator.size > 1 else None
    try:
        yield
    finally:
        if communicator.size > 1:
            signal.signal(signal.SIGTERM, former)


def resumed(run_dir: Path, given: dict[str, Any]) -> RunOptions:
    """The options of the run in a folder. Only places may be given again with other values."""
    from tkg_incremental.cli.run import holds_run

    if not holds_run(run_dir):
        raise BadDataError(f"there is no run to resume in '{run_dir}'")
    begun = vars(RunOptions.load(run_dir))
    for name, value in given.items():
        if name not in PLACES and value != begun[name]:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag}: the run in '{run_dir}' was begun with {begun[name]} (got {value}); leave it out")
    return RunOptions(**{**begun, **given})


def merge(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the configuration file, overridden by the flags."""
    names = [*OPTIONS, "run_dir"]
    flags = {name: value for name, value in vars(args).items() if name in names}
    from_file: dict[str, Any] = {}
    if hasattr(args, "config"):
        parsed = vars(args.parser.parse_args(read_config(args.config, names)))
        from_file = {name: value for name, value in parsed.items() if name in names}
    for source in (flags, from_file):
        if "dataset" in source and "facts" in source:
            raise UsageError("give either --dataset or --facts, and not both")
    if "dataset" in flags or "facts" in flags:  # one replaces the other of the file
        needless = [name for name, each in OPTIONS.items() if each.metadata["needs"] == "facts"]
        for name in ("dataset", "facts", *(needless if "dataset" in flags else ("val", "test"))):
            from_file.pop(name, None)
    return {**from_file, **flags}


def default_run_dir(options: RunOptions) -> str:
    what = options.dataset if options.facts is None else Path(options.facts).stem
    how = "joint" if options.protocol == "joint" else options.strategy
    return f"runs/{what}-{options.model}-{how}-{options.seed}"
