"""What is in the folder of a run, read with errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tkg_incremental.cli.errors import BadDataError
from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models import TKGModel, load_model
from tkg_incremental.training import Result


def open_model(run_dir: Path, device: str = "cpu") -> tuple[TKGModel, Catalog]:
    """The model of a run, and its names and times."""
    model = load_model(_file(run_dir, "model.pt"), device)
    if model.catalog is None:
        raise BadDataError(f"the model in '{run_dir}' was saved without names; make it with from_dataset()")
    return model, model.catalog


def open_result(run_dir: Path) -> Result:
    """The metrics of a run."""
    path = _file(run_dir, "metrics.json")
    try:
        return Result.load(path)
    except (ValueError, KeyError, TypeError) as error:
        raise BadDataError(f"'{path}' is damaged or of another version: {error!r}") from None


def open_config(run_dir: Path) -> dict[str, Any]:
    """What the run says it is; nothing if it does not."""
    path = run_dir / "config.json"
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise BadDataError(f"'{path}' is damaged: {error}") from None


def _file(run_dir: Path, name: str) -> Path:
    if not run_dir.is_dir():
        raise BadDataError(f"there is no run folder '{run_dir}'")
    path = run_dir / name
    if not path.exists():
        raise BadDataError(
            f"'{run_dir}' has no {name}: either it is no run folder, or its run was stopped before the first step "
            f"ended, and tkg-incremental train --resume --run-dir {run_dir} continues it"
        )
    return path
