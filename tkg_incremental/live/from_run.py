"""Turns a run that ``train`` made into a live graph."""

from __future__ import annotations

import os
import time as clock_time
from bisect import bisect_right
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.live.facts import Ints
from tkg_incremental.live.first_training import measure_first
from tkg_incremental.live.folder import GraphFolder
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.importing import NamedFacts, import_facts
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.records import OPEN
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.live.timelines import whole_timeline
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models import load_model
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import FIRST, HEAD, LAST, REL, TAIL


def import_run(
    path: str | os.PathLike[str], run: str | os.PathLike[str], settings: LiveSettings, gate: GateSettings
) -> None:
    """Creates the folder of a graph with the facts, names and model of a run, which is its folder or ``model.pt``."""
    begin, run = clock_time.perf_counter(), Path(run)
    model = load_model(run / "model.pt" if run.is_dir() else run)
    catalog = model.catalog
    if catalog is None:
        raise ValueError(f"the model of '{run}' was saved without names; make it with from_dataset()")
    # The axis may have steps of several instants, and instants without a step. A live graph has one step per instant.
    last = catalog.axis.num_steps - 1 if catalog.last_step is None else catalog.last_step
    instants = range(catalog.axis.first[0], catalog.axis.last[last] + 1)
    steps = torch.tensor([bisect_right(catalog.axis.first, instant) - 1 for instant in instants])
    settings = _settings_of(model, settings)
    made = _with_steps(model, steps, settings)
    about = {
        "graph": {"first": instants.start, "unit_reason": "as in the run"},
        **settings.to_tables(),
        "gate": asdict(gate),
    }
    with GraphFolder.create(path, catalog.axis.unit, about) as folder:
        names = catalog.entities.names, catalog.relations.names
        named = NamedFacts(catalog.axis.unit, "as in the run", *names, _facts_of(catalog, last))
        import_facts(folder.store, named, clock=instants.stop - 1)
        for own, known in ((folder.store.entities, catalog.entities), (folder.store.relations, catalog.relations)):
            own.add_aliases({alias: known[known.index(alias)] for alias in known.aliases})
    calibration = AnswerCalibration.from_dict(catalog.calibration) if catalog.calibration else None
    with ServedGraph(path, write=True) as graph:
        store, clock = graph.folder.store, graph.clock
        current = whole_timeline(store, clock).observed.at(clock.num_steps - 1)
        number, _ = measure_first(graph, made, current, calibration, begin)
        graph.folder.release(number)


def _settings_of(model: TKGModel, settings: LiveSettings) -> LiveSettings:
    """Settings that construct a model like this one."""
    options = {key: value for key, value in model.options.items() if value is not None}
    width = options.pop("hidden_channels")
    return replace(settings, name=type(model).__name__, hidden_channels=width, options=options)


def _with_steps(model: TKGModel, steps: torch.Tensor, settings: LiveSettings) -> TKGModel:
    """The model with other steps: step i is that of ``steps[i]``."""
    if "time" not in model.axes.values() and not torch.equal(steps, torch.arange(len(steps))):
        raise ValueError(
            f"{type(model).__name__} computes vectors from the numbers of steps, so that only a run with one step per "
            "instant can become a live graph; train TNTComplEx or HyTE on it, or create the graph from the facts"
        )
    relations = model.sizes["relation"] // (1 + model.reciprocal)
    made = settings.make_model(model.sizes["entity"], relations, len(steps))
    with torch.no_grad():
        for name, table in made.tables().items():
            old = model.tables()[name]
            table.copy_(old[steps] if model.axes[name] == "time" else old)
    return made.eval()


def _facts_of(catalog: Catalog, last: int) -> Ints:
    """``[5, n]`` train facts until a step as half-open intervals of instants. Those that hold at the step are open."""
    facts = catalog.facts[catalog.facts[:, FIRST] <= last].long().numpy()
    starts, ends = (np.fromiter(instants, np.int64) for instants in (catalog.axis.first, catalog.axis.last))
    is_open = facts[:, LAST] >= last
    valid_to = np.where(is_open, OPEN, ends[np.minimum(facts[:, LAST], last)] + 1)
    return np.stack([*(facts[:, column] for column in (HEAD, REL, TAIL)), starts[facts[:, FIRST]], valid_to])
