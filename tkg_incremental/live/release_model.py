"""The model of a release: loaded with its calibration, grown for an update, and written as the next release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.live.folder import GraphFolder
from tkg_incremental.live.gate import GateReport
from tkg_incremental.live.manifest import MANIFEST
from tkg_incremental.live.records import GraphFolderError
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel
from tkg_incremental.seeding import make_generator
from tkg_incremental.storage import CorruptFileError

if TYPE_CHECKING:
    from tkg_incremental.live.serving import ServedGraph


def load_model(graph: ServedGraph, number: int | None = None, sizes: dict[str, int] | None = None) -> TKGModel:
    """The model of a release, by default of the current one. Its tables are mapped from their files: it may be trained,
    and the files stay. ``sizes`` are numbers of entities, relations and steps where there are more than the release
    has rows for; the new rows are zero."""
    number = graph.released() if number is None else number
    sizes = {**_sizes_of(graph, number), **(sizes or {})}
    with torch.device("meta"):
        model = graph.settings.make_model(sizes["entities"], sizes["relations"], sizes["steps"])
    rows = {name: model.sizes[axis] for name, axis in model.axes.items()}
    tables = graph.folder.releases.load_release(number, rows)
    try:
        model.load_state_dict(tables, assign=True)
    except RuntimeError as error:
        toml = graph.folder.path / "graph.toml"
        raise GraphFolderError(f"[model] of '{toml}' does not fit release {number}: {error}") from None
    return model.eval()


def load_grown(graph: ServedGraph, steps: int) -> tuple[TKGModel, dict[str, int]]:
    """The model of the current release, with initial values for the entities, relations and steps that it lacks, and
    the rows of each axis that it has values for."""
    number, store = graph.released(), graph.folder.store
    # Names of pending changes have ids already.
    sizes = {"entities": store.num_entities, "relations": store.num_relations, "steps": steps}
    model, learnt = load_model(graph, number, sizes), _sizes_of(graph, number)
    relations = learnt["relations"] * (1 + model.reciprocal)
    before = {"entity": learnt["entities"], "relation": relations, "time": learnt["steps"]}
    generator = make_generator(graph.settings.seed, "growth", store.num_entities)
    for axis in dict.fromkeys(model.axes.values()):
        model.initialize_new(axis, before[axis], generator)
    return model, before


def load_calibration(folder: GraphFolder, number: int) -> AnswerCalibration | None:
    """What turns features of an answer of a release into a probability; ``None`` if it was not calibrated."""
    found = folder.releases.manifest(number).calibration
    try:
        return AnswerCalibration.from_dict(found) if found else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, number, f"it has no calibration ({error!r})") from None


def _sizes_of(graph: ServedGraph, number: int) -> dict[str, int]:
    """Entities, relations and steps of a release, if they fit its tables and the time axis: a damaged size cannot ask
    for memory."""
    release, origin = graph.folder.releases.manifest(number), graph.clock.origin
    sizes = release.vocabulary
    if not sizes.keys() >= {"entities", "relations", "steps"}:
        raise _damaged(graph.folder, number, f"it has no sizes of the vocabulary (got {sizes})")
    largest = max([0, *(table["shape"][0] for table in release.tables.values() if table["shape"])])
    if not all(0 <= sizes[name] <= largest for name in ("entities", "relations")):
        raise _damaged(graph.folder, number, f"its tables have fewer rows than its vocabulary (got {sizes})")
    if sizes["steps"] != release.clock - origin + 1:
        raise GraphFolderError(
            f"first in [graph] of '{graph.folder.path / 'graph.toml'}' is {graph.show(origin)}, which does not fit "
            f"the {sizes['steps']} steps of release {number} until {graph.show(release.clock)}"
        )
    return sizes


def _damaged(folder: GraphFolder, number: int, reason: str) -> CorruptFileError:
    return CorruptFileError(folder.releases.folder(number) / MANIFEST, reason)


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
