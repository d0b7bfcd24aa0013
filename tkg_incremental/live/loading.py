"""The model and the calibration of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tkg_incremental.live.folder import GraphFolder, GraphFolderError
from tkg_incremental.live.manifest import MANIFEST, DamagedReleaseError
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel

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


def load_grown(graph: ServedGraph, steps: int, generator: torch.Generator) -> tuple[TKGModel, dict[str, int]]:
    """The model of the current release, with initial values for the entities, relations and steps that it lacks, and
    the rows of each axis that it has values for."""
    number, store = graph.released(), graph.folder.store
    sizes = {"entities": store.num_entities, "relations": store.num_relations, "steps": steps}
    model, learnt = load_model(graph, number, sizes), _sizes_of(graph, number)
    relations = learnt["relations"] * (1 + model.reciprocal)
    before = {"entity": learnt["entities"], "relation": relations, "time": learnt["steps"]}
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


def _damaged(folder: GraphFolder, number: int, reason: str) -> DamagedReleaseError:
    return DamagedReleaseError(number, folder.releases.folder(number) / MANIFEST, reason)
