"""Learning what is pending: an update from the recorded changes to a release or a refusal."""

from __future__ import annotations

import math
import time as clock_time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.live.gate import GateReport, GateSettings, judge
from tkg_incremental.live.gate_questions import GateQuestions
from tkg_incremental.live.learning import train_update
from tkg_incremental.live.proposals import count_changes
from tkg_incremental.live.quads import changed_facts, expired_facts, replay_of_entities, replay_quads
from tkg_incremental.live.records import Change
from tkg_incremental.live.release_model import changed_rows, is_finite, load_grown, write_model
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.live.step_sizes import sums_by_facts
from tkg_incremental.live.store import FactStore
from tkg_incremental.live.timelines import update_timeline
from tkg_incremental.ops.answers import HEAD, TAIL
from tkg_incremental.seeding import make_generator

# A round of learning that adds less than this to the sum of the gate's shares is the last one.
_STEP = 0.01


def learn_pending(graph: ServedGraph, force: bool, begin: float) -> dict[str, Any]:
    """Learns all pending updates and releases the result, if it passes the gate.

    Args:
        graph: The graph, with the writer lock.
        force: Release it even if it does not, as long as all numbers are finite.
        begin: When the update began, as of :func:`time.perf_counter`.

    Returns:
        State, release and gate report, for the :class:`UpdateReport`.
    """
    store, settings, gate = graph.folder.store, graph.settings, graph.gate
    before, clock, number = graph.clock, graph.pending_clock, len(store.releases())
    changes = [change for update in store.updates("pending") for change in store.changes(update.id)]
    model, sizes = load_grown(graph, clock.num_steps)
    questions = GateQuestions(graph, model, sizes["entity"])
    with store.preview():
        changed = changed_facts(changes, store, clock)
        ended = torch.cat([changed.ended, expired_facts(store, before, clock)])
        changed = changed._replace(ended=torch.unique(ended, dim=0) if len(ended) else ended)
        rng = np.random.default_rng(make_generator(settings.seed, "replay", number).initial_seed())
        replay, initial_sums = replay_quads(store, clock, settings.replay, rng), None
        if not settings.visits_every_fact(store.num_facts):
            entities = torch.unique(torch.cat(changed)[:, [HEAD, TAIL]]).tolist()
            half = settings.replay // 2
            replay = torch.cat([replay[:half], replay_of_entities(entities, store, clock, half, rng)])
            initial_sums = sums_by_facts(model, sizes, entities, store)
        questions.look_up(changed, clock)
        reports: list[GateReport] = []

        def judge_round() -> tuple[float, bool]:
            reports.append(questions.measure(model))
            return _value(reports[-1], gate), _is_over(reports, gate, initial_sums is not None)

        moved: dict[str, Tensor] = {}
        if len(torch.cat(changed)):
            timeline = update_timeline(store, clock, changed, replay)
            moved = train_update(model, timeline, changed, replay, settings, number, judge_round, initial_sums)
        lost = _without_facts(changes, store)
        if len(lost):  # nothing is left that its vector stands for
            model.initialize("entity", lost, make_generator(settings.seed, "lost", number))
            for name in model.tables("entity"):
                moved[name] = torch.cat([moved.get(name, lost[:0]), lost])
        rows = changed_rows(model, moved, sizes)
        if not reports or len(lost):
            reports = [questions.measure(model)]
        report = max(reports, key=lambda each: _value(each, gate))  # the round that train_update has kept
        outcome = judge(replace(report, finite=is_finite(model, rows)), gate)
        calibration = graph.rescaled(graph.calibration, model, clock, questions.older.quads)
        facts, new_entities = store.num_facts, store.num_entities - sizes["entity"]
    about = {"reason": "update", "facts": facts, "seconds": clock_time.perf_counter() - begin}
    about |= {"new_entities": new_entities, **count_changes(changes)}
    candidate = write_model(graph.folder, model, rows, outcome, calibration, clock.now, about)
    if not outcome.passed and not (force and outcome.finite):
        graph.folder.releases.reject(candidate)
        return {"state": "refused", "release": graph.current, "gate": outcome}
    graph.folder.release(candidate)
    return {"state": "released", "release": candidate, "gate": outcome}


def _without_facts(changes: Sequence[Change], store: FactStore) -> Tensor:
    """``[n]`` entities of retracted facts that have no other facts."""
    names = {name for change in changes if change.op == "retract" for name in (change.head, change.tail)}
    ids = sorted({entity for name in names if (entity := store.entities.find(name)) is not None})
    return torch.tensor([entity for entity in ids if not store.neighbours(entity)], dtype=torch.long)


def _is_over(reports: Sequence[GateReport], gate: GateSettings, is_sampled: bool) -> bool:
    """Whether nothing is left to learn, or the gate was passed and another round has not helped."""
    # The gate would pass with a little to spare. Further rounds bring facts back only if they visit every fact.
    kept = gate.kept if is_sampled else gate.kept / 10
    tighter = replace(gate, learned=0.99, kept=kept, outranked=(1 + gate.outranked) / 2)
    if judge(reports[-1], tighter).passed:
        return True
    has_stopped = len(reports) > 1 and _value(reports[-1], gate) - _value(reports[-2], gate) < _STEP
    return has_stopped and any(judge(report, gate).passed for report in reports)


def _value(report: GateReport, gate: GateSettings) -> float:
    """How good a round is: the sum of its shares, and better than all that the gate refuses if it does not."""
    shares = sum(value for value in (report.learned, report.kept, report.outranked) if not math.isnan(value))
    return shares + 3 * judge(report, gate).passed
