"""Reads the files of a run folder, with errors that name the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.cli.errors import BadDataError
from tkg_incremental.cli.graph_io import is_graph

if TYPE_CHECKING:
    from tkg_incremental.data.catalog import Catalog
    from tkg_incremental.models import TKGModel
    from tkg_incremental.training import Result


def open_model(run_dir: Path, device: str = "cpu") -> tuple[TKGModel, Catalog]:
    """The model of a run, and its names and times."""
    path = _file(run_dir, "model.pt")
    from tkg_incremental.models import load_model

    model = load_model(path, device)
    if model.catalog is None:
        raise BadDataError(f"the model in '{run_dir}' was saved without names; make it with from_dataset()")
    return model, model.catalog


def open_result(run_dir: Path) -> Result:
    """The metrics of a run."""
    path = _file(run_dir, "metrics.json")
    from tkg_incremental.training.result import Result

    try:
        return Result.load(path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadDataError(f"'{path}' is damaged or of another version: {error!r}") from None


def open_config(run_dir: Path) -> dict[str, Any]:
    """The configuration of a run; empty if it has none."""
    path = run_dir / "config.json"
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadDataError(f"'{path}' is damaged: {error}") from None


def is_unfinished(run_dir: Path) -> bool:
    """Whether a folder exists and has no metrics yet."""
    return run_dir.is_dir() and not is_graph(run_dir) and not (run_dir / "metrics.json").exists()


def check_folder(run_dir: Path) -> None:
    if not run_dir.is_dir():
        raise BadDataError(
            f"there is no run folder '{run_dir}': train makes one, and create the folder of a live graph"
        )
    if is_graph(run_dir):
        raise BadDataError(f"'{run_dir}' is a live graph, and this command reads the folder of a run")


def _file(run_dir: Path, name: str) -> Path:
    check_folder(run_dir)
    path = run_dir / name
    if not path.exists():
        raise BadDataError(
            f"'{run_dir}' has no {name}: it is no run folder, or its run was stopped before the end of the first step; "
            f"then tkg-incremental train --resume --run-dir {run_dir} continues it"
        )
    return path
