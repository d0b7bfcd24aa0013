"""The first training of a live graph: all facts, and probabilities fitted on facts that were left out."""

from __future__ import annotations

import math
import time as clock_time
from collections.abc import Callable

import torch
from torch import Tensor

from tkg_incremental.answers.calibrate import fit_calibration
from tkg_incremental.answers.facts import TensorFacts
from tkg_incremental.data import Timeline
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.gate import GateReport
from tkg_incremental.live.learning import train_whole
from tkg_incremental.live.quads import some_quads
from tkg_incremental.live.questions import Questions
from tkg_incremental.live.release_model import is_finite, write_model
from tkg_incremental.live.reports import UpdateReport
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.live.timelines import make_timeline, whole_timeline
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel
from tkg_incremental.progress import progress_bar
from tkg_incremental.seeding import make_generator

# Facts that a calibration is fitted on, and the share of all facts that they are at most.
_CALIBRATION_FACTS, _CALIBRATION_SHARE = 400, 0.1
# Graphs with fewer facts get no probabilities.
_ENOUGH = 50


def train_first(graph: ServedGraph, calibrate: bool) -> UpdateReport:
    """Trains a model on all facts, pending changes included, and makes it the current release.

    Args:
        graph: The graph, with the writer lock.
        calibrate: First leave some facts out and fit probabilities on them.
    """
    begin = clock_time.perf_counter()
    store, settings, clock = graph.folder.store, graph.settings, graph.pending_clock
    with store.preview():
        everything = whole_timeline(store, clock)
        model = settings.make_model(store.num_entities, store.num_relations, clock.num_steps)
        calibration, epochs = None, settings.epochs
        calibrates = calibrate and len(everything.observed) >= _ENOUGH
        if calibrates:
            epochs = max(1, epochs // 3)
        total = epochs + calibrates * settings.epochs
        with progress_bar(total=total, desc="training", unit="epoch", leave=False) as bar:
            if calibrates:
                calibration = _calibrate(graph, model, everything, clock, bar.update)
            train_whole(model, everything, settings, epochs, bar.update)
        known = everything.observed.between(0, clock.num_steps - 1)
        sample = known.sample(_CALIBRATION_FACTS, make_generator(settings.seed, "unit"))
        calibration = graph.rescaled(calibration, model, clock, sample)
        number, report = measure_first(graph, model, everything.observed.at(clock.num_steps - 1), calibration, begin)
        facts = store.num_facts
    graph.folder.release(number)
    return UpdateReport("released", number, report, facts=facts, seconds=clock_time.perf_counter() - begin)


def measure_first(
    graph: ServedGraph, model: TKGModel, current: Tensor, calibration: AnswerCalibration | None, begin: float
) -> tuple[int, GateReport]:
    """Writes a model that knows all facts as a candidate: its number, and the share of facts that rank first.

    Args:
        graph: The graph.
        model: The model.
        current: ``[n, 4]`` the facts that hold at the last step.
        calibration: Its probabilities.
        begin: When the work began, as of :func:`time.perf_counter`.
    """
    clock, sample = graph.pending_clock, some_quads(current, graph.gate.sample, graph.settings.seed)
    kept = Questions(sample, graph.folder.store, clock, model.static_entities).share_first(model)
    report = GateReport(math.nan, kept, kept, math.nan, math.nan, is_finite(model))
    about = {"reason": "training", "facts": graph.folder.store.num_facts, "seconds": clock_time.perf_counter() - begin}
    return write_model(graph.folder, model, None, report, calibration, clock.now, about), report


def _calibrate(
    graph: ServedGraph, model: TKGModel, everything: Timeline, clock: GraphClock, on_epoch: Callable[[], object]
) -> AnswerCalibration:
    """Trains the model on most facts, and fits probabilities on the others."""
    settings, facts = graph.settings, everything.observed.facts
    held_out = torch.zeros(len(facts), dtype=torch.bool)
    size = min(_CALIBRATION_FACTS, int(len(facts) * _CALIBRATION_SHARE))
    held_out[torch.randperm(len(facts), generator=make_generator(settings.seed, "held out"))[:size]] = True
    most = make_timeline(facts[~held_out], graph.folder.store, clock)
    train_whole(model, most, settings, settings.epochs, on_epoch)
    splits = {"train": facts[~held_out], "val": facts[held_out], "test": facts[:0]}
    timeline = Timeline(splits, everything.num_entities, everything.num_relations, clock)
    generator = make_generator(settings.seed, "calibration")
    train, val = (
        table.between(0, clock.num_steps - 1).sample(_CALIBRATION_FACTS, generator)
        for table in (timeline.observed, timeline.val)
    )
    # Facts that were left out are not known to this engine.
    engine = graph.make_engine(model, clock, facts=TensorFacts(facts[~held_out], clock.num_steps, is_complete=True))
    return fit_calibration(engine, timeline, train, val, generator)
