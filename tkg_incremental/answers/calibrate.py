"""Fitting and measuring a calibration on facts that the model was not trained on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.answers.engine import AnswerEngine
from tkg_incremental.data import Timeline
from tkg_incremental.metrics.calibration import Calibration, brier_score, expected_calibration_error, reliability
from tkg_incremental.ops.answers import SIDES, TIME, query_columns

# Candidates of a question that a calibration is fitted on: the best-scored ones, and a sample of the others.
_BEST, _OTHERS = 5, 15
# Share of questions that are asked once more about an entity for which they have no answer.
_UNANSWERABLE = 0.25


class Judged(NamedTuple):
    """The candidates of one question by descending score: features ``[n, f]``, and which of them are true, ``[n]``."""

    features: Tensor
    is_true: Tensor


def judge(engine: AnswerEngine, timeline: Timeline, quads: Tensor, generator: torch.Generator) -> Iterator[Judged]:
    """The questions of held-out quads, both directions, with their candidates of the right type.

    Some questions are asked again about an entity that never was on the given side of the relation: they have no
    answer. Known answers of a question, which a person sees marked as known, are left out.

    Args:
        engine: The engine.
        timeline: The graph; facts of all splits count as true.
        quads: ``[n, 4]`` held-out quads.
        generator: Source of randomness.
    """
    for i, quad in enumerate(quads.tolist()):
        for side in SIDES:
            given_column, answer_column = query_columns(side)
            given, rel, step = quad[given_column], quad[1], quad[TIME]
            candidates = engine.candidates(rel, side)
            if len(candidates) < 2 or not bool((candidates == quad[answer_column]).any()):
                continue
            _, true = timeline.answers(side, "all").expand(quads[i : i + 1])
            _, known = timeline.answers(side, "train").expand(quads[i : i + 1])
            yield _judge(engine, given, rel, side, step, candidates, true, known)
            other = int(torch.randint(timeline.num_entities, (), generator=generator))
            if torch.rand((), generator=generator) < _UNANSWERABLE:
                members = engine.facts.type_members(rel, "tail" if side == "head" else "head")
                if not bool((members == other).any()):
                    nothing = torch.empty(0, dtype=torch.long)
                    yield _judge(engine, other, rel, side, step, candidates, nothing, nothing)


def _judge(
    engine: AnswerEngine, given: int, rel: int, side: str, step: int, candidates: Tensor, true: Tensor, known: Tensor
) -> Judged:
    scores, _ = engine.evaluate(given, rel, side, step, candidates)  # type: ignore[arg-type]
    features = engine.features(given, rel, side, scores, torch.isin(candidates, known))  # type: ignore[arg-type]
    order = torch.argsort(scores, descending=True)
    order = order[~torch.isin(candidates[order], known)]
    return Judged(features[order], torch.isin(candidates[order], true))


def fit_calibration(
    engine: AnswerEngine, timeline: Timeline, quads: Tensor, generator: torch.Generator
) -> Calibration | None:
    """A calibration from held-out quads; :obj:`None` if there are too few."""
    features, labels, weights = [], [], []
    for question in judge(engine, timeline, quads, generator):
        rest = len(question.is_true) - _BEST
        others = _BEST + torch.randperm(max(0, rest), generator=generator)[:_OTHERS]
        chosen = torch.cat([torch.arange(min(_BEST, len(question.is_true))), others])
        features.append(question.features[chosen])
        labels.append(question.is_true[chosen].double())
        weight = torch.ones(len(chosen), dtype=torch.double)
        weight[_BEST:] = rest / max(1, len(others))
        weights.append(weight)
    if len(labels) < 20 or len(torch.unique(torch.cat(labels))) < 2:
        return None
    return Calibration.fit(torch.cat(features), torch.cat(labels), torch.cat(weights))


def measure_calibration(
    engine: AnswerEngine, timeline: Timeline, quads: Tensor, generator: torch.Generator
) -> dict[str, object]:
    """Brier score, expected calibration error and reliability diagram of the five best answers to held-out questions:
    the answers a person sees."""
    assert engine.calibration is not None
    judged = list(judge(engine, timeline, quads, generator))
    features = torch.cat([question.features[:_BEST] for question in judged])
    labels = torch.cat([question.is_true[:_BEST] for question in judged]).double()
    probabilities = engine.calibration(features)
    return {
        "Brier": brier_score(probabilities, labels),
        "ECE": expected_calibration_error(probabilities, labels),
        "reliability": reliability(probabilities, labels),
        "questions": len(judged),
    }
