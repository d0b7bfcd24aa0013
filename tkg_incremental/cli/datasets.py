"""``datasets``: the datasets of the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.options import DEFAULTS
from tkg_incremental.registry import DATASETS
from tkg_incremental.tables import format_table

DESCRIPTION = """
List the datasets of this package: kind (intervals or events), sizes, licence and source, and which
of them are stored below --root. The others are downloaded or generated on first use.
"""
EXAMPLES = """
tkg-incremental datasets
tkg-incremental datasets --root /data/graphs

Your own facts need no name: tkg-incremental train --facts my.csv
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "datasets", "list the datasets", DESCRIPTION, EXAMPLES, run)
    parser.add_argument("--root", metavar="DIR", type=Path, default=Path(DEFAULTS.root), help="their folder (data)")


def run(args: argparse.Namespace) -> int:
    header = ["name", "kind", "entities", "relations", "steps", "train", "val", "test", f"below {args.root}"]
    rows: list[list[str | float]] = [
        [name, info.kind, *info[1:7], cached(args.root / name)] for name, info in DATASETS.items()
    ]
    print(format_table(header, rows))
    about: list[list[str | float]] = [
        [name, info.summary, info.license, info.source] for name, info in DATASETS.items()
    ]
    print("\n" + format_table(["name", "description", "licence", "source"], about))
    return OK


def cached(folder: Path) -> str:
    """Which files of a dataset are in its folder."""
    built = list((folder / "processed").glob("*.pt"))
    if built:
        return f"ready, {sum(path.stat().st_size for path in built) / 1e6:.1f} MB"
    raw = folder / "raw"
    return "raw files" if raw.is_dir() and any(raw.iterdir()) else "–"
