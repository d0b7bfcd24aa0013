"""``datasets``: what there is to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.options import DEFAULTS
from tkg_incremental.cli.tables import plain_table
from tkg_incremental.registry import ABOUT, DATASETS

DESCRIPTION = """
List the datasets that come with this package, how large they are, and which are there already
below --root. What is not there is downloaded or made when it is first used.
"""
EXAMPLES = """
tkg-incremental datasets
tkg-incremental datasets --root /data/graphs

Your own facts need no name: tkg-incremental train --facts my.tsv
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "datasets", "list the datasets", DESCRIPTION, EXAMPLES, run)
    parser.add_argument("--root", metavar="DIR", type=Path, default=Path(DEFAULTS.root), help="their folder (data)")


def run(args: argparse.Namespace) -> int:
    header = ["name", "entities", "relations", "steps", "train", "val", "test", f"below {args.root}", "what it is"]
    rows: list[list[str | float]] = [
        [name, *ABOUT[name].size, cached(args.root / name), ABOUT[name].summary] for name in DATASETS
    ]
    print(plain_table(header, rows))
    return OK


def cached(folder: Path) -> str:
    """What of a dataset is in its folder."""
    built = list((folder / "processed").glob("*.pt"))
    if built:
        return f"ready, {sum(path.stat().st_size for path in built) / 1e6:.1f} MB"
    raw = folder / "raw"
    return "raw files" if raw.is_dir() and any(raw.iterdir()) else "–"
