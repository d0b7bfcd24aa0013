"""Fitting and measuring the calibration of answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.answers.engine import MISTAKES, NUM_OWN, AnswerEngine
from tkg_incremental.answers.facts import FactsOfQuestion
from tkg_incremental.data import Timeline
from tkg_incremental.metrics.calibration import (
    AnswerCalibration,
    Calibration,
    brier_score,
    expected_calibration_error,
    reliability,
)
from tkg_incremental.ops.answers import FIRST, LAST, REL, SIDES, TIME, Side, query_columns

# Answers of a question that count when a calibration is measured, and that it is fitted on with some of the others.
_BEST, _OTHERS = 5, 5
# Share of questions that are followed by three without an answer.
_UNANSWERABLE = 0.6
# Fewer questions do not make a calibration.
_ENOUGH = 20
# Facts and candidates that the unit of the scores is measured on.
_UNIT_QUADS, _UNIT_CANDIDATES = 50, 1000


class Judged(NamedTuple):
    """The answers to one question by descending score.

    Args:
        features: ``[n, f]``.
        is_true: ``[n]``.
        is_held_out: Whether it is the question of a held-out quad.
    """

    features: Tensor
    is_true: Tensor
    is_held_out: bool


class _Question(NamedTuple):
    given: int
    rel: int
    side: Side
    step: int
    answer: int

    @classmethod
    def of(cls, quad: Tensor, side: Side) -> _Question:
        given, answer = query_columns(side)
        return cls(int(quad[given]), int(quad[REL]), side, int(quad[TIME]), int(quad[answer]))

    def answers(self, timeline: Timeline, split: str | None = None) -> Tensor:
        """``[n]`` the true answers in one split; by default in all."""
        facts = timeline.truth.facts if split is None else timeline.split(split).facts
        given, answer = query_columns(self.side)
        holds = (facts[:, FIRST] <= self.step) & (self.step <= facts[:, LAST])
        return facts[holds & (facts[:, REL] == self.rel) & (facts[:, given] == self.given), answer].cpu()


def judge(
    engine: AnswerEngine, timeline: Timeline, train: Tensor, quads: Tensor, split: str, generator: torch.Generator
) -> Iterator[Judged]:
    """The questions that a calibration is about, with their candidates of the right type: those of held-out quads and
    of train quads, in both directions.

    Known facts, those that are over, and answers of the other held-out split are left out, so most questions of train
    quads have no further answer. A share of the held-out questions is followed by three without an answer: one about
    any entity and relation that were never seen together, one about an entity that was on the same side of other
    relations only, and one about a train fact at a time at which the question has no answer.

    Args:
        engine: The engine.
        timeline: The graph.
        train: ``[m, 4]`` train quads.
        quads: ``[n, 4]`` quads of one split.
        split: ``"val"`` or ``"test"``.
        generator: Source of randomness.
    """
    for quad in train.cpu():
        for side in SIDES:
            question = _Question.of(quad, side)
            if len(engine.candidates(question.rel, side)) > 1:
                yield _judge(engine, timeline, question, split)._replace(is_held_out=False)
    for quad in quads.cpu():
        for side in SIDES:
            question = _Question.of(quad, side)
            candidates = engine.candidates(question.rel, side)
            if len(candidates) > 1 and bool((candidates == question.answer).any()):
                yield _judge(engine, timeline, question, split)
            if float(torch.rand((), generator=generator)) < _UNANSWERABLE:
                for other in _without_answer(timeline, question, generator):
                    if len(engine.candidates(other.rel, side)) > 1:
                        yield _judge(engine, timeline, other, None)


def _without_answer(timeline: Timeline, question: _Question, generator: torch.Generator) -> Iterator[_Question]:
    def draw(size: int) -> int:
        return int(torch.randint(size, (), generator=generator))

    given, truth, facts = query_columns(question.side)[0], timeline.truth.facts, timeline.observed.facts
    alike = int(facts[draw(len(facts)), given]) if len(facts) else question.given
    for entity, rel in ((draw(timeline.num_entities), draw(timeline.num_relations)), (alike, question.rel)):
        if not bool(((truth[:, REL] == rel) & (truth[:, given] == entity)).any()):
            yield question._replace(given=entity, rel=rel)
    same = facts[facts[:, REL] == question.rel, given]
    if len(same):
        ended = question._replace(given=int(same[draw(len(same))]), step=draw(timeline.num_steps))
        if not len(ended.answers(timeline)):
            yield ended


def _judge(engine: AnswerEngine, timeline: Timeline, question: _Question, split: str | None) -> Judged:
    """The answers to a question, of which those in ``split`` are true."""
    candidates = engine.candidates(question.rel, question.side)
    true = question.answers(timeline)
    right = true[:0] if split is None else question.answers(timeline, split)
    marks = FactsOfQuestion.at(engine.facts, *question[:4]).marks(candidates)
    scores = engine.scores(*question[:4], candidates)
    features = engine.features(question.rel, question.side, candidates, scores, marks)
    aside = ~marks.open | torch.isin(candidates, true[~torch.isin(true, right)])
    order = torch.argsort(scores, descending=True)
    order = order[~aside[order]]
    return Judged(features[order], torch.isin(candidates[order], right), split is not None)


def score_unit(engine: AnswerEngine, quads: Tensor) -> float:
    """By how much known facts outscore the mean candidate of the right type.

    Args:
        engine: The engine.
        quads: ``[n, 4]`` known facts; about 50 of them count.
    """
    gaps = []
    for quad in quads[:: 1 + len(quads) // _UNIT_QUADS].cpu():
        for side in SIDES:
            question = _Question.of(quad, side)
            candidates = engine.candidates(question.rel, side)
            some = candidates[:: 1 + len(candidates) // _UNIT_CANDIDATES]
            own, *others = engine.scores(*question[:4], torch.cat([torch.tensor([question.answer]), some])).tolist()
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
    features, labels = [], []
    for question in judge(engine, timeline, train, val, "val", generator):
        rest = max(0, len(question.is_true) - _BEST)
        others = _BEST + torch.randperm(rest, generator=generator)[:_OTHERS]
        chosen = torch.cat([torch.arange(min(_BEST, len(question.is_true))), others])
        features.append(question.features[chosen])
        labels.append(question.is_true[chosen])
    predicted = _fit(features, labels) if len(val) else None
    known = _fit(*_known_and_rivals(engine, timeline, train), isotonic=False)
    # It was fitted on as many wrong answers as facts.
    known = known and replace(known, bias=known.bias + math.log((1 - MISTAKES) / MISTAKES))
    return AnswerCalibration(predicted, known, unit)


def _known_and_rivals(engine: AnswerEngine, timeline: Timeline, quads: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Features and labels of train facts, and of the best wrong answer to the same question as if it were known."""
    features, labels = [], []
    for quad in quads.cpu():
        for side in SIDES:
            question = _Question.of(quad, side)
            candidates = engine.candidates(question.rel, side)
            true = question.answers(timeline)
            marks = FactsOfQuestion.at(engine.facts, *question[:4]).marks(candidates)
            wrong = ~torch.isin(candidates, true) & ~marks.over
            if not bool(wrong.any()):
                continue
            scores = engine.scores(*question[:4], candidates)
            rival = scores.masked_fill(~wrong, -torch.inf).argmax()
            places = {True: (candidates == question.answer).nonzero()[0, 0], False: rival}
            for label, place in places.items():
                known = torch.isin(candidates, true) if label else torch.arange(len(candidates)) == place
                row = engine.features(question.rel, side, candidates, scores, marks._replace(known=known))[place]
                features.append(row[None, :NUM_OWN])
                labels.append(torch.tensor([label]))
    return features, labels


def _fit(features: list[Tensor], labels: list[Tensor], isotonic: bool = True) -> Calibration | None:
    if len(labels) < _ENOUGH or len(torch.unique(torch.cat(labels))) < 2:
        return None
    return Calibration.fit(torch.cat(features), torch.cat(labels), isotonic=isotonic)


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
    calibration = engine.calibration.predicted
    if calibration is None:
        raise ValueError("engine must have a calibration of predicted answers (got None)")
    judged = list(judge(engine, timeline, train, quads, split, generator))
    if not judged:
        return {}
    labels = torch.cat([question.is_true[:_BEST] for question in judged]).double()
    probabilities = torch.cat([calibration(question.features[:_BEST]) for question in judged])
    held_out = torch.cat([torch.full_like(q.is_true[:_BEST], q.is_held_out) for q in judged])
    return {
        "Brier": brier_score(probabilities, labels),
        "ECE": expected_calibration_error(probabilities, labels),
        "ECE_answered": expected_calibration_error(probabilities[held_out], labels[held_out]),
        "reliability": [list(row) for row in reliability(probabilities, labels)],
        "questions": len(judged),
    }
