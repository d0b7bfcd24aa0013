"""Flags from the table of options."""

from __future__ import annotations

import argparse
from dataclasses import Field
from pathlib import Path
from typing import Any

from tkg_incremental.cli.options import DEFAULTS, OPTIONS
from tkg_incremental.registry import STRATEGIES

GROUPS = {
    "run": "the run",
    "data": "the data",
    "model": "the model",
    "strategy": "what is learnt at each step",
    "learning": "how it is learnt",
}


def add_train_flags(parser: argparse.ArgumentParser) -> None:
    """All flags of ``train``. Those that are not given leave no value, so that a file can give them."""
    parser.argument_default = argparse.SUPPRESS
    about = {"data": f"By default the dataset {DEFAULTS.dataset}.", "strategy": _explain_strategies()}
    groups = {name: parser.add_argument_group(title, about.get(name)) for name, title in GROUPS.items()}
    run = groups["run"]
    run.add_argument("--run-dir", metavar="DIR", help="folder of the run (runs/DATASET-MODEL-STRATEGY-SEED)")
    run.add_argument("--config", metavar="FILE", type=Path, help="a TOML or YAML file with any of these options")
    again = run.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="continue the run in the folder")
    again.add_argument("--overwrite", action="store_true", help="replace the run in the folder")
    for name, group in groups.items():
        add_options(group, name)


def add_options(parser: argparse._ActionsContainer, group: str) -> None:
    """The flags of one group of options."""
    for name, each in OPTIONS.items():
        if each.metadata["group"] == group:
            add_option(parser, name)


def add_option(parser: argparse._ActionsContainer, name: str) -> None:
    """The flag of one option."""
    each = OPTIONS[name]
    flag, text = f"--{name.replace('_', '-')}", _help(each)
    if each.metadata["kind"] is bool:
        parser.add_argument(flag, action="store_true", default=argparse.SUPPRESS, help=text)
    else:
        kind, metavar = each.metadata["kind"], each.metadata["metavar"]
        parser.add_argument(flag, type=kind, metavar=metavar, default=argparse.SUPPRESS, help=text)


def _help(each: Field[Any]) -> str:
    """The help of an option, with its default and who uses it."""
    text, suited, used_by, group = (each.metadata[key] for key in ("text", "suited", "used_by", "group"))
    many = group == "learning" or (group == "strategy" and used_by and len(used_by) >= len(STRATEGIES) - 1)
    if used_by and not many:
        text = f"{', '.join(used_by)}: {text}"
    if suited:
        large = "as the released TIE code" if suited[1] is None else suited[1]
        text += f" (small datasets: {suited[0]}, others: {large})"
    elif each.default is not None and each.default is not False and each.default != "auto":
        text += f" ({each.default})"
    return text.replace("%", "%%")


def _explain_strategies() -> str:
    width = max(map(len, STRATEGIES))
    return "\n".join(f"{name:{width}}  {summary}" for name, (_, summary) in STRATEGIES.items())
