"""A model as a release that may become the current one: which rows are written, and whether they are finite."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tkg_incremental.live.folder import GraphFolder
from tkg_incremental.live.gate import GateReport
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel


def model_sizes(model: TKGModel) -> dict[str, int]:
    """Entities, relations and steps that a model has rows for."""
    sizes = model.sizes
    relations = sizes["relation"] // (1 + model.reciprocal)
    return {"entities": sizes["entity"], "relations": relations, "steps": sizes["time"]}


def changed_rows(model: TKGModel, moved: dict[str, Tensor], before: dict[str, int]) -> dict[str, Tensor]:
    """For each table the rows that training moved, and the rows that are new.

    Args:
        model: The model.
        moved: Rows that were moved, by table.
        before: Rows of each axis before the update.
    """
    rows = {}
    for name, axis in model.axes.items():
        new = torch.arange(before[axis], model.sizes[axis])
        rows[name] = torch.unique(torch.cat([moved.get(name, new[:0]), new]))
    return rows


@torch.no_grad()
def is_finite(model: TKGModel, rows: dict[str, Tensor] | None = None) -> bool:
    """Whether all numbers of the rows are finite; of all rows, if they are not given."""
    tables = model.tables()
    return all(bool((t if rows is None else t[rows[name]]).isfinite().all()) for name, t in tables.items())


def write_model(
    folder: GraphFolder,
    model: TKGModel,
    rows: dict[str, Tensor] | None,
    report: GateReport,
    calibration: AnswerCalibration | None,
    now: int,
    about: dict[str, Any],
    updates: tuple[int, ...] | None = None,
) -> int:
    """Writes a model as a release that is not current yet, and returns its number.

    Args:
        folder: The graph, opened for writing.
        model: The model.
        rows: Rows that differ from the current release; :obj:`None` writes all.
        report: What the gate measured.
        calibration: Turns features of an answer into a probability.
        now: The last instant that the model has learnt.
        about: Further metrics.
        updates: Updates that it has learnt; by default all pending ones.
    """
    manifest = folder.write_candidate(
        {name: table.detach() for name, table in model.tables().items()},
        rows,
        clock=now,
        updates=updates,
        metrics={**report.to_dict(), **about},
        vocabulary=model_sizes(model),
        calibration={} if calibration is None else calibration.to_dict(),
    )
    return manifest.number
