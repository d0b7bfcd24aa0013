"""What the commands on graph folders share: opening one, and printing what they found."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.cli.errors import BadDataError
from tkg_incremental.tables import show_share, without_nan
from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.answers import Answer
    from tkg_incremental.live.graph import LiveGraph
    from tkg_incremental.live.reports import UpdateReport


def add_graph(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="GRAPH", type=Path, help="folder of a graph, as given to create")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def add_as_of(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of",
        metavar="TIME",
        type=as_of,
        help="answer as the graph would have then: a date or time (UTC), or the number of a release (graph folders)",
    )


def as_of(text: str) -> str | int:
    """A time, or the number of a release."""
    return int(text) if text.isdigit() else text


def is_graph(path: Path) -> bool:
    """Whether a folder is one of a graph, not of a run."""
    return (path / "graph.toml").is_file()


@contextmanager
def open_graph(path: Path) -> Iterator[LiveGraph]:
    """Opens a graph; see :func:`bad_data` for errors."""
    from tkg_incremental.live.graph import LiveGraph

    with bad_data(), LiveGraph(path) as graph:
        yield graph


@contextmanager
def bad_data() -> Iterator[None]:
    """Unknown names and wrong dates end the command, and warnings are printed as notes."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except KeyError as error:  # its text is the quoted name
            raise BadDataError(str(error.args[0]) if error.args else repr(error)) from error
        except ValueError as error:
            raise BadDataError(str(error)) from error
        finally:
            for text in dict.fromkeys(str(note.message) for note in notes if note.category is UserWarning):
                print(f"note: {printable(text)}", file=sys.stderr)


def print_json(value: Any) -> None:
    """Prints JSON that any parser reads: NaN, which JSON does not have, is null."""
    print(json.dumps(without_nan(value), ensure_ascii=False))


def print_report(report: UpdateReport, as_json: bool) -> int:
    """Prints what an update did and returns its exit code."""
    if as_json:
        print_json({**report.to_dict(), "exit_code": report.exit_code})
    else:
        lines = str(report).split("\n")
        print(printable(lines[0]))
        for line in lines[1:]:
            print(printable(line), file=sys.stderr)
    return report.exit_code


def answer_row(answer: Answer) -> list[str | float]:
    """Cells of a table: name, probability, and what is known."""
    return [answer.name, show_share(answer.probability), answer.period]
