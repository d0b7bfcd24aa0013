"""Fitting and measuring the calibration of answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from tkg_incremental.answers.engine import NUM_OWN, AnswerEngine
from tkg_incremental.data import Timeline
from tkg_incremental.metrics.calibration import (
    AnswerCalibration,
    Calibration,
    brier_score,
    expected_calibration_error,
    reliability,
)
from tkg_incremental.ops.answers import FIRST, SIDES, TIME, Side, query_columns

# Answers of a question that count when a calibration is measured, and that it is fitted on with some of the others.
_BEST, _OTHERS = 5, 5
# Share of questions that are asked twice more: of an entity that never was on the given side, and at a time without
# an answer.
_UNANSWERABLE = 0.25
# Fewer questions do not make a calibration.
_ENOUGH = 20

Split = Literal["train", "val", "test"]


class Judged(NamedTuple):
    """The answers to one question by descending score.

    Args:
        features: ``[n, f]``.
        is_true: ``[n]``.
        has_answer: Whether the question has an answer.
    """

    features: Tensor
    is_true: Tensor
    has_answer: bool


def judge(
    engine: AnswerEngine, timeline: Timeline, quads: Tensor, split: Split, generator: torch.Generator
) -> Iterator[Judged]:
    """The questions of quads in both directions, with their candidates of the right type.

    Known facts are left out of the answers if the quads are held-out, and answers of the other held-out split always. A
    share of the questions of held-out quads is asked again in two ways in which they have no answer: about an entity
    that never was on the given side of the relation, and about the entity of a train fact at a time without an answer.

    Args:
        engine: The engine.
        timeline: The graph.
        quads: ``[n, 4]`` quads of one split.
        split: The split.
        generator: Source of randomness.
    """
    for quad in quads.cpu():
        for side in SIDES:
            yield from _judge(engine, timeline, quad, side, split, has_answer=True)
            if split != "train" and float(torch.rand((), generator=generator)) < _UNANSWERABLE:
                for other in (
                    _foreign(engine, timeline, quad, side, generator),
                    _out_of_time(engine, timeline, quad, side, generator),
                ):
                    if other is not None:
                        yield from _judge(engine, timeline, other, side, split, has_answer=False)


def _foreign(
    engine: AnswerEngine, timeline: Timeline, quad: Tensor, side: Side, generator: torch.Generator
) -> Tensor | None:
    """The question of an entity that never was on the given side of the relation."""
    given = query_columns(side)[0]
    other = quad.clone()
    other[given] = torch.randint(timeline.num_entities, (), generator=generator)
    facts = timeline.truth.facts
    is_there = ((facts[:, 1] == quad[1].item()) & (facts[:, given] == other[given].item())).any()
    return None if is_there else other


def _out_of_time(
    engine: AnswerEngine, timeline: Timeline, quad: Tensor, side: Side, generator: torch.Generator
) -> Tensor | None:
    """The question of a train fact of the same relation, at a random time, unless it has an answer."""
    facts = timeline.observed.facts
    same = (facts[:, 1] == quad[1].item()).nonzero().flatten()
    if not len(same):
        return None
    fact = facts[same[int(torch.randint(len(same), (), generator=generator))]].cpu()
    other = fact[[0, 1, 2, FIRST]].clone()
    other[TIME] = torch.randint(timeline.num_steps, (), generator=generator)
    return None if timeline.answers(side, "all").has_answers(other[None].to(timeline.device))[0] else other


def _judge(
    engine: AnswerEngine, timeline: Timeline, quad: Tensor, side: Side, split: Split, has_answer: bool
) -> Iterator[Judged]:
    (given_column, answer_column), rel, step = query_columns(side), int(quad[1]), int(quad[TIME])
    given, answer = int(quad[given_column]), int(quad[answer_column])
    candidates = engine.candidates(rel, side)
    if len(candidates) < 2 or (has_answer and not bool((candidates == answer).any())):
        return
    question = quad[None].to(timeline.device)
    true = timeline.answers(side, "all").expand(question)[1].cpu()
    known = torch.tensor(list(engine.facts.known_answers(given, rel, side, step)), dtype=torch.long)
    if split != "train":
        right = _answers_in(timeline, split, given, rel, side, step)
        aside = torch.cat([known, true[~torch.isin(true, right)]])
    else:
        right, aside = known, true[~torch.isin(true, known)]
    scores = engine.scores(given, rel, side, step, candidates)
    features = engine.features(given, rel, side, candidates, scores, torch.isin(candidates, known))
    order = torch.argsort(scores, descending=True)
    order = order[~torch.isin(candidates[order], aside)]
    yield Judged(features[order], torch.isin(candidates[order], right), has_answer)


def _answers_in(timeline: Timeline, split: Split, given: int, rel: int, side: Side, step: int) -> Tensor:
    facts = timeline.split(split).facts
    given_column, answer_column = query_columns(side)
    holds = (facts[:, 3] <= step) & (step <= facts[:, 4])
    return facts[holds & (facts[:, 1] == rel) & (facts[:, given_column] == given), answer_column].cpu()


def fit_calibration(
    engine: AnswerEngine, timeline: Timeline, train: Tensor, val: Tensor, generator: torch.Generator
) -> AnswerCalibration:
    """Fits probabilities of known facts on train quads and those of predicted answers on held-out quads.

    Args:
        engine: The engine; its calibration is not used.
        timeline: The graph.
        train: ``[n, 4]`` some train quads.
        val: ``[m, 4]`` held-out quads.
        generator: Source of randomness.
    """
    features, labels = [], []
    for question in judge(engine, timeline, val, "val", generator):
        rest = max(0, len(question.is_true) - _BEST)
        others = _BEST + torch.randperm(rest, generator=generator)[:_OTHERS]
        chosen = torch.cat([torch.arange(min(_BEST, len(question.is_true))), others])
        features.append(question.features[chosen])
        labels.append(question.is_true[chosen])
    predicted = _fit(features, labels)
    features, labels = [], []
    for question in judge(engine, timeline, train, "train", generator):
        chosen = torch.cat([(question.is_true == label).nonzero().flatten()[:_BEST] for label in (True, False)])
        features.append(question.features[chosen, :NUM_OWN])
        labels.append(question.is_true[chosen])
    return AnswerCalibration(predicted, _fit(features, labels, isotonic=False))


def _fit(features: list[Tensor], labels: list[Tensor], isotonic: bool = True) -> Calibration | None:
    if len(labels) < _ENOUGH or len(torch.unique(torch.cat(labels))) < 2:
        return None
    return Calibration.fit(torch.cat(features), torch.cat(labels), isotonic=isotonic)


def measure_calibration(
    engine: AnswerEngine, timeline: Timeline, quads: Tensor, generator: torch.Generator, split: Split = "test"
) -> dict[str, object]:
    """Brier score, expected calibration error and reliability diagram of the five best predicted answers to the
    questions of held-out quads and to questions without an answer.

    Args:
        engine: The engine, with a calibration.
        timeline: The graph.
        quads: ``[n, 4]`` quads of ``split`` that the calibration was not fitted on.
        generator: Source of randomness.
        split: Their split.
    """
    calibration = engine.calibration.predicted
    if calibration is None:
        raise ValueError("engine must have a calibration of predicted answers (got None)")
    judged = list(judge(engine, timeline, quads, split, generator))
    if not judged:
        return {}
    labels = torch.cat([question.is_true[:_BEST] for question in judged]).double()
    probabilities = torch.cat([calibration(question.features[:_BEST]) for question in judged])
    has_answer = torch.cat([torch.full_like(q.is_true[:_BEST], q.has_answer) for q in judged])
    return {
        "Brier": brier_score(probabilities, labels),
        "ECE": expected_calibration_error(probabilities, labels),
        "ECE_answered": expected_calibration_error(probabilities[has_answer], labels[has_answer]),
        "reliability": reliability(probabilities, labels),
        "questions": len(judged),
    }
