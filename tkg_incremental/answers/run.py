"""What a run records about its answers: a calibration, how good it is, and how many facts the model learnt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.answers.calibrate import fit_calibration, measure_calibration
from tkg_incremental.answers.engine import AnswerEngine
from tkg_incremental.answers.typed import typed_ranks
from tkg_incremental.data import FactTable, Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.seeding import make_generator

# Quads of each split that a calibration is fitted and measured on.
_QUADS = 500


def calibrate_answers(model: TKGModel, timeline: Timeline, last_step: int, seed: int = 0) -> dict[str, Any]:
    """Fits probabilities, puts them into the model's catalog, and measures them.

    Known facts are calibrated on train quads, predictions on validation quads, and measured on test quads; at most 500
    of each.

    Args:
        model: A model with a catalog.
        timeline: The graph.
        last_step: The last step that the model learnt.
        seed: Seed of the samples.

    Returns:
        Brier score, expected calibration error and reliability diagram; empty without validation or test quads.
    """
    assert model.catalog is not None
    model.catalog = replace(model.catalog, last_step=last_step, calibration=None)
    generator = make_generator(seed, "calibration")
    train, val, test = (
        _sample(timeline.split(name), last_step, _QUADS, generator) for name in ("train", "val", "test")
    )
    engine = AnswerEngine.from_catalog(model)
    engine.calibration = fit_calibration(engine, timeline, train, val, generator)
    model.catalog = replace(model.catalog, calibration=engine.calibration.to_dict())
    if engine.calibration.predicted is None or not len(test):
        return {}
    return measure_calibration(engine, timeline, train, test, generator)


def known_facts_ranked_first(
    model: TKGModel, timeline: Timeline, sample: int = 2000, last_step: int | None = None, seed: int = 0
) -> float:
    """The share of train facts, at random steps and in both directions, that the model ranks before all wrong answers
    of the right type. Ties count as wrong.

    Args:
        model: The model.
        timeline: The graph; facts of all splits count as true.
        sample: Number of quads.
        last_step: The last step that the model learnt; by default that of the timeline.
        seed: Seed of the sample.
    """
    last_step = timeline.num_steps - 1 if last_step is None else last_step
    quads = _sample(timeline.observed, last_step, sample, make_generator(seed, "known facts")).to(timeline.device)
    if not len(quads):
        return float("nan")
    return float((typed_ranks(model, timeline, quads, last_step) == 1).double().mean())


def _sample(facts: FactTable, last_step: int, size: int, generator: torch.Generator) -> Tensor:
    quads = facts.between(0, last_step)
    return quads.sample(min(size, len(quads)), generator)
