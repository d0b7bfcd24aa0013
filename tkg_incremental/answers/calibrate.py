"""Fitting and measuring the calibration of answers."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from tkg_incremental.answers.engine import MISTAKES, AnswerEngine
from tkg_incremental.answers.features import NUM_FEATURES, NUM_OWN
from tkg_incremental.answers.judging import judge, score_questions
from tkg_incremental.data import Timeline
from tkg_incremental.metrics.calibration import (
    AnswerCalibration,
    Calibration,
    brier_score,
    expected_calibration_error,
    reliability,
)
from tkg_incremental.ops.answers import REL, SIDES, TIME, query_columns
from tkg_incremental.ops.keys import find

# Answers of a question that count when a calibration is measured, and that it is fitted on with some of the others.
_BEST, _OTHERS = 5, 5
# Fewer questions do not make a calibration.
_ENOUGH = 20
# Facts and candidates that the unit of the scores is measured on.
_UNIT_QUADS, _UNIT_CANDIDATES = 50, 1000


def score_unit(engine: AnswerEngine, quads: Tensor) -> float:
    """By how much known facts outscore the mean candidate of the right type.

    Args:
        engine: The engine.
        quads: ``[n, 4]`` known facts; about 50 of them count.
    """
    gaps, asked = [], quads[:: 1 + len(quads) // _UNIT_QUADS].cpu()
    for side in SIDES:
        given, answer = query_columns(side)
        for quad in asked.tolist():
            some = engine.facts.some_members(quad[REL], side, _UNIT_CANDIDATES)
            asked_for = torch.cat([torch.tensor([quad[answer]]), some])
            own, *others = engine.scores(quad[given], quad[REL], side, quad[TIME], asked_for).tolist()
            gaps.append(own - sum(others) / len(others))
    mean = sum(gaps) / len(gaps) if gaps else 1.0
    return mean if math.isfinite(mean) and mean > 0 else 1.0  # a model that learnt nothing


def fit_calibration(
    engine: AnswerEngine, timeline: Timeline, train: Tensor, val: Tensor, generator: torch.Generator
) -> AnswerCalibration:
    """Fits probabilities of known facts on train quads and those of predicted answers on held-out quads.

    Args:
        engine: The engine; its calibration is replaced by one without probabilities.
        timeline: The graph.
        train: ``[n, 4]`` some train quads.
        val: ``[m, 4]`` held-out quads.
        generator: Source of randomness.
    """
    unit = score_unit(engine, train)
    engine.calibration = AnswerCalibration(unit=unit)
    features, is_true, _, questions = judge(engine, timeline, train, val, "val", generator, _BEST, _OTHERS)
    predicted = _fit(features[:, :NUM_FEATURES], is_true) if len(val) and questions >= _ENOUGH else None
    known = _fit(*_known_and_rivals(engine, timeline, train), isotonic=False)
    # It was fitted on as many wrong answers as facts.
    known = known and replace(known, bias=known.bias + math.log((1 - MISTAKES) / MISTAKES))
    return AnswerCalibration(predicted, known, unit)


def _known_and_rivals(engine: AnswerEngine, timeline: Timeline, quads: Tensor) -> tuple[Tensor, Tensor]:
    """Features and labels of train facts, and of the best wrong answer to the same question as if it were known."""
    features, labels, asked = [], [], quads.cpu()
    for side in SIDES:
        for rows, rel, candidates, scores, marks, is_true in score_questions(engine, timeline, asked, side):
            wrong = ~is_true & ~marks.over
            own = find(candidates, asked[rows, query_columns(side)[1]].contiguous())[0]
            rival = scores.masked_fill(~wrong, -torch.inf).argmax(1)
            as_rival = torch.zeros_like(wrong).scatter(1, rival[:, None], True)
            for place, known, label in ((own, is_true, True), (rival, as_rival, False)):
                found = engine.features(rel, side, scores, marks._replace(known=known), place[:, None])
                features.append(found[wrong.any(1), 0, :NUM_OWN])
                labels.append(torch.full((len(features[-1]),), label))
    if not features:
        return torch.empty(0, NUM_OWN), torch.empty(0, dtype=torch.bool)
    return torch.cat(features), torch.cat(labels)


def _fit(features: Tensor, labels: Tensor, isotonic: bool = True) -> Calibration | None:
    if len(labels) < _ENOUGH or len(torch.unique(labels)) < 2:
        return None
    return Calibration.fit(features, labels, isotonic=isotonic)


def measure_calibration(
    engine: AnswerEngine,
    timeline: Timeline,
    train: Tensor,
    quads: Tensor,
    generator: torch.Generator,
    split: str = "test",
) -> dict[str, object]:
    """Brier score, expected calibration error and reliability diagram of the five best predicted answers to the
    questions of held-out quads, of train quads, and to questions without an answer.

    ``"ECE_answered"`` is the error of the questions of held-out quads alone.

    Args:
        engine: The engine, with a calibration.
        timeline: The graph.
        train: ``[m, 4]`` train quads.
        quads: ``[n, 4]`` quads of ``split`` that the calibration was not fitted on.
        generator: Source of randomness.
        split: Their split.
    """
    calibration = engine.calibration
    if calibration.predicted is None:
        raise ValueError("engine must have a calibration of predicted answers (got None)")
    features, is_true, held_out, questions = judge(engine, timeline, train, quads, split, generator, _BEST)
    if not questions:
        return {}
    labels = is_true.double()
    probabilities = calibration.predict(features[:, :NUM_FEATURES], features[:, NUM_FEATURES])
    return {
        "Brier": brier_score(probabilities, labels),
        "ECE": expected_calibration_error(probabilities, labels),
        "ECE_answered": expected_calibration_error(probabilities[held_out], labels[held_out]),
        "reliability": [list(row) for row in reliability(probabilities, labels)],
        "questions": questions,
    }
