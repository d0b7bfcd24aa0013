r"""The command line, ``tkg-incremental``: one file per command. Commands import torch when they run, not before."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tkg_incremental import __version__
from tkg_incremental.cli import (
    check,
    compare,
    create,
    datasets,
    erase,
    evaluate,
    export,
    history,
    query,
    report,
    rollback,
    timeline,
    train,
    update,
)
from tkg_incremental.cli.arguments import Parser
from tkg_incremental.cli.errors import BROKEN_PIPE, INTERRUPTED, UsageError, describe, exit_code
from tkg_incremental.text import printable

RESEARCH = (datasets, train, query, evaluate, report, compare, export)
LIVE = (create, update, check, timeline, history, rollback, erase)
COMMANDS = (*RESEARCH, *LIVE)

DESCRIPTION = """\
Train models of temporal knowledge graphs step by step, and query them at any time.

`train` writes a run folder; `query`, `evaluate`, `report`, `compare` and `export` read it.
`create` makes a live graph, which `update` keeps current; `query`, `check`, `timeline`, `history`,
`rollback` and `erase` work on it.
`tkg-incremental COMMAND --help` describes a command, with examples.
"""
EPILOG = """\
examples:
  tkg-incremental train --run-dir runs/demo
  tkg-incremental query runs/demo "?" "president of" "United States" --at 2016 --at 2018 --at 2022
  tkg-incremental report runs/demo --open

exit codes:
  0  done                  3    bad data: a file, a folder or a name is missing or wrong
  1  failed                130  stopped by Ctrl-C
  2  bad usage             4    an update was refused by the gate
"""


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(
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
        The exit code. Bad usage exits at once, as argparse does.
    """
    args, unknown = make_parser().parse_known_args(argv)
    if unknown:
        args.parser.refuse(unknown)
    try:
        with interrupted_once():
            return int(args.run(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe; Python would report it again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        code = exit_code(error)
        if args.debug or code is None:
            raise
        if isinstance(error, UsageError):
            args.parser.error(str(error))
        message = "\n".join(map(printable, describe(error).split("\n")))
        print(f"{args.parser.prog}: error: {message}", file=sys.stderr)
        return code


@contextmanager
def interrupted_once() -> Iterator[None]:
    """Ignores Ctrl-C after the first one, so that clean-up and the end of the process are not interrupted."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background
    if not heeded or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
