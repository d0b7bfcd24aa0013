"""Kinds of arguments, and groups of them that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

from tkg_incremental.cli.options import DEFAULTS
from tkg_incremental.registry import DATASETS

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands, name: str, summary: str, description: str, examples: str, run: Callable[..., int]
) -> argparse.ArgumentParser:
    """A subcommand whose arguments are there only if they are given."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=dedent(description).strip(),
        epilog="examples:\n" + re.sub("^", "  ", dedent(examples).strip(), flags=re.MULTILINE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="folder of a run, as given to train --run-dir")


def add_data(parser: argparse._ActionsContainer) -> None:
    """Which facts: a dataset by name, or files of one's own."""
    default = argparse.SUPPRESS
    names = ", ".join(DATASETS)
    parser.add_argument(
        "--dataset", type=one_of(DATASETS), metavar="NAME", default=default, help=f"a dataset by name: {names}"
    )
    parser.add_argument("--root", metavar="DIR", default=default, help=f"folder of the datasets ({DEFAULTS.root})")
    parser.add_argument(
        "--facts",
        metavar="FILE",
        default=default,
        help="your own facts instead: a TSV or CSV file with lines of head, rel, tail, time "
        "or head, rel, tail, start, end; split at random into train, validation and test",
    )
    parser.add_argument("--val", metavar="FILE", default=default, help="validation facts; then --facts is for training")
    parser.add_argument("--test", metavar="FILE", default=default, help="test facts; then --facts is for training")
    parser.add_argument(
        "--binning",
        type=one_of(["year", "day", "index", "count"]),
        metavar="STEP",
        default=default,
        help=f"what a step of --facts is: year, day, index or count, about equally many facts ({DEFAULTS.binning})",
    )
    parser.add_argument(
        "--unit",
        type=one_of(["year", "day", "index"]),
        metavar="UNIT",
        default=default,
        help=f"with --binning count, what times are: year, day or index ({DEFAULTS.unit})",
    )
    parser.add_argument(
        "--threshold",
        type=positive,
        metavar="N",
        default=default,
        help=f"with --binning count, close a step beyond so many starts and ends ({DEFAULTS.threshold})",
    )


def add_device(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--device", type=device, default=argparse.SUPPRESS, help=f"auto, cpu, cuda or mps ({DEFAULTS.device})"
    )


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """One of some names, in whatever case it is written."""
    known = {name.casefold(): name for name in names}

    def parse(text: str) -> str:
        if text.casefold() not in known:
            raise argparse.ArgumentTypeError(f"expected one of {', '.join(known.values())} (got {text!r})")
        return known[text.casefold()]

    return parse


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1 (got {text!r})")
    return int(text)


def positive_or_all(text: str) -> int | str:
    return "all" if text == "all" else positive(text)


def device(text: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", text):
        raise argparse.ArgumentTypeError(f"expected auto, cpu, cuda or mps (got {text!r})")
    return text
