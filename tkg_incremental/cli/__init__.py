r"""The command line, ``tkg-incremental``: one file a command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tkg_incremental import __version__
from tkg_incremental.cli import compare, datasets, evaluate, export, query, report, train
from tkg_incremental.cli.errors import BAD_DATA, BAD_DATA_ERRORS, BROKEN_PIPE, FAILED, INTERRUPTED, UsageError
from tkg_incremental.distributed import LostProcessError
from tkg_incremental.training import TrainingError

COMMANDS = (datasets, train, query, evaluate, report, compare, export)

DESCRIPTION = """\
Learn temporal knowledge graphs step by step, and ask what is true when.

A run begins with `train`, which leaves a folder; the other commands read that folder.
`tkg-incremental COMMAND --help` explains a command, with examples.
"""
EPILOG = """\
examples:
  tkg-incremental train --run-dir runs/demo
  tkg-incremental query runs/demo "?" "president of" "United States" --at 2016 --at 2018 --at 2022
  tkg-incremental report runs/demo --open

exit codes:
  0  done                  3    bad data: a file, a folder or a name is missing or wrong
  1  failed                130  stopped by Ctrl-C
  2  bad usage
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        "tkg-incremental",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv: The arguments; those of the process by default.

    Returns:
        The exit code. Bad usage exits at once, as is argparse's way.
    """
    args = make_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has had enough; Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (UsageError, TrainingError, LostProcessError, *BAD_DATA_ERRORS) as error:
        if args.debug:
            raise
        if isinstance(error, UsageError):
            args.parser.error(str(error))
        print(f"{args.parser.prog}: error: {error}", file=sys.stderr)
        return FAILED if isinstance(error, (TrainingError, LostProcessError)) else BAD_DATA
