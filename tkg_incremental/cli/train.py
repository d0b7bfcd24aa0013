"""``train``: learn a dataset step by step."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.config_file import read_config
from tkg_incremental.cli.errors import OK, BadDataError, UsageError
from tkg_incremental.cli.options import OPTION_NAMES, RunOptions
from tkg_incremental.cli.progress import watchers
from tkg_incremental.cli.report import report_of
from tkg_incremental.cli.run import holds_run, train
from tkg_incremental.cli.train_flags import add_flags
from tkg_incremental.distributed import LostProcessError, World, join
from tkg_incremental.distributed.world import FirstFailedError

DESCRIPTION = """
Learn a temporal knowledge graph step by step: a base model of the first 70% of the steps,
then one step after the other, with an evaluation after each. What it finds goes into the run
folder: metrics.json, model.pt (with all names: ask it with `query`) and report.html.

Ctrl-C stops a run; train --resume --run-dir RUN continues it and needs no other flag.
"""
EXAMPLES = """
tkg-incremental train                                    # world leaders with TIE-DE
tkg-incremental train --dataset YAGO11k --model HyTE --strategy ft --seed 1
tkg-incremental train --facts my.tsv --run-dir runs/mine # your own facts
tkg-incremental train --config run.toml --epochs 5       # flags go before what the file says
tkg-incremental train --resume --run-dir runs/mine
torchrun --nproc-per-node 4 -m tkg_incremental train --dataset YAGO11k     # four processes

A file for --config has a line for each flag, such as  hidden-channels = 64  (TOML) or  hidden-channels: 64  (YAML).
"""

# A run may be continued with these changed: they say where things are, not what is learnt.
ELSEWHERE = ("facts", "val", "test", "root", "base", "device", "checkpoint_every")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "train", "learn a dataset step by step", DESCRIPTION, EXAMPLES, run)
    parser.usage = "%(prog)s [--dataset NAME | --facts FILE] [--model NAME] [--strategy NAME] [--run-dir DIR] [flag …]"
    add_flags(parser)


def run(args: argparse.Namespace) -> int:
    given = merge(args)
    resume, run_dir = hasattr(args, "resume"), given.pop("run_dir", None)
    run_dir = Path(run_dir or default_run_dir(RunOptions(**given)))
    world = join()
    try:
        with ended_by_others(world):
            with world.first() as is_first:
                options = resumed(run_dir, given) if is_first and resume else RunOptions(**given)
            options = world.tell(options)
            result = train(options, run_dir, watchers(), resume, hasattr(args, "overwrite"), world)
    except KeyboardInterrupt:
        if world.is_first:
            print(f"\nStopped. {how_to_resume(run_dir, world)}", file=sys.stderr)
        raise
    except FirstFailedError:
        raise
    except LostProcessError as error:
        raise LostProcessError(f"{error}. {how_to_resume(run_dir, world)}") from error
    if world.is_first:
        print(result)
        print(f"\nWritten to {run_dir}: metrics.json, model.pt, {report_of(run_dir).name}")
    world.leave()
    return OK


def how_to_resume(run_dir: Path, world: World) -> str:
    """What to do about a run that was stopped."""
    if world.is_first and not holds_run(run_dir):
        return "There is nothing to resume yet."
    several = f"torchrun --nproc-per-node {world.size} -m tkg_incremental"
    start = "tkg-incremental" if world.size == 1 else several
    also = "" if world.size == 1 else "\nwith this or any other number of processes"
    command = f"{start} train --resume --run-dir {shlex.quote(str(run_dir))}"
    return f"This continues the run from its last checkpoint:\n  {command}{also}"


@contextmanager
def ended_by_others(world: World) -> Iterator[None]:
    """Turns the signal by which ``torchrun`` ends the processes that are left into an error that says so."""

    def end(*_: object) -> None:
        raise LostProcessError(f"process {world.rank} of {world.size} was told to end, because another one has")

    former = signal.signal(signal.SIGTERM, end) if world.size > 1 else None
    try:
        yield
    finally:
        if world.size > 1:
            signal.signal(signal.SIGTERM, former)


def resumed(run_dir: Path, given: dict[str, Any]) -> RunOptions:
    """The options a run was begun with; only where things are may have changed since."""
    if not holds_run(run_dir):
        raise BadDataError(f"there is no run to resume in '{run_dir}'")
    begun = vars(RunOptions.load(run_dir))
    for name, value in given.items():
        if name not in ELSEWHERE and value != begun[name]:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag}: the run in '{run_dir}' was begun with {begun[name]} (got {value}); leave it out")
    return RunOptions(**{**begun, **given})


def merge(args: argparse.Namespace) -> dict[str, Any]:
    """What the configuration file says, and over it what the flags say."""
    names = [*OPTION_NAMES, "run_dir"]
    flags = {name: value for name, value in vars(args).items() if name in names}
    from_file: dict[str, Any] = {}
    if hasattr(args, "config"):
        parsed = vars(args.parser.parse_args(read_config(args.config, names)))
        from_file = {name: value for name, value in parsed.items() if name in names}
    for source in (flags, from_file):
        if "dataset" in source and "facts" in source:
            raise UsageError("give either --dataset or --facts, and not both")
    if "dataset" in flags or "facts" in flags:  # one replaces the other of the file
        for name in ("dataset", "facts", "val", "test"):
            from_file.pop(name, None)
    given = {**from_file, **flags}
    if "facts" not in given and not hasattr(args, "resume") and ("val" in given or "test" in given):
        raise UsageError("--val and --test go with --facts, which then are the facts to train on")
    return given


def default_run_dir(options: RunOptions) -> str:
    what = options.dataset if options.facts is None else Path(options.facts).stem
    return f"runs/{what}-{options.model}-{options.strategy}-{options.seed}"
