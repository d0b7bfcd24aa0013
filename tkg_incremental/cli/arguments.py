"""Parsers of commands, and types of arguments. Nothing here imports torch."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import dedent
from typing import NoReturn, TypeAlias

from tkg_incremental.registry import did_you_mean
from tkg_incremental.text import printable

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest command or flag for one that is mistyped."""

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            message += did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        super().error(printable(message))

    def refuse(self, unknown: list[str]) -> NoReturn:
        """The error about arguments that the command does not have."""
        flags = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        hints = [did_you_mean(flag, self._option_string_actions) for flag in flags]
        self.error(f"unrecognized arguments: {' '.join(unknown)}{next(filter(None, hints), '')}")


def add_command(
    commands: Commands, name: str, summary: str, description: str, examples: str, run: Callable[..., int]
) -> Parser:
    """Adds a subcommand."""
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


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """One of some names, in any case, with hyphens or underscores."""
    known = {_fold(name): name for name in names}

    def parse(text: str) -> str:
        if _fold(text) not in known:
            near = did_you_mean(_fold(text), known)
            hint = re.sub(r"[\w.]+", lambda word: known.get(word[0], word[0]), near)
            raise argparse.ArgumentTypeError(f"expected one of {', '.join(known.values())} (got {text!r}{hint})")
        return known[_fold(text)]

    return parse


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def positive(text: str) -> int:
    """An integer from 1 on."""
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1 (got {text!r})")
    return int(text)


def whole(text: str) -> int:
    """An integer from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0 (got {text!r})")
    return int(text)


def positive_or_all(text: str) -> int | str:
    return "all" if text == "all" else positive(text)


def seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 2^63 - 1 (got {text!r})")
    return int(text)


def weight(text: str) -> float:
    """A finite number from 0 on."""
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of at least 0 (got {text!r})")
    return value


def share(text: str) -> float:
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected a share of at least 0 and less than 1 (got {text!r})")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number (got {text!r})") from None


def columns(text: str) -> str:
    """``head=Employee,rel=Role``; kept as text, so that it can be written to run.json."""
    names = ("head", "rel", "tail", "time", "start", "end")
    for part in text.split(","):
        key, _, name = part.partition("=")
        if key.strip() not in names or not name.strip():
            raise argparse.ArgumentTypeError(
                f"expected {', '.join(names)} with a column each, such as head=Employee (got {part!r})"
            )
    return text


def device(text: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", text):
        raise argparse.ArgumentTypeError(f"expected auto, cpu, cuda or mps (got {text!r})")
    return text
