"""The terms of TIE's loss, as its equations say them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from oracles.facts import Row
from oracles.scores import Vector, with_answer

Score = Callable[[Row], float]


class Draw(NamedTuple):
    """The negatives drawn for one side of a row; none where there are none to draw."""

    row: Row
    side: str
    negatives: list[int]

    def scores(self, score: Score) -> list[float]:
        """Of the true entity, then of its negatives."""
        return [score(self.row), *(score(with_answer(self.row, self.side, entity)) for entity in self.negatives)]


def softmax(scores: list[float]) -> list[float]:
    peak = max(scores)
    weights = [math.exp(x - peak) for x in scores]
    return [weight / sum(weights) for weight in weights]


def cross_entropy(scores: list[float]) -> float:
    """Of the first against all."""
    return -math.log(softmax(scores)[0])


def link(score: Score, draws: list[Draw]) -> float:
    """Tail side + head side, mean over the rows: every row has a draw for each side."""
    return sum(cross_entropy(draw.scores(score)) for draw in draws) / (len(draws) / 2)


def distillation(previous: Score, score: Score, draws: list[Draw]) -> float:
    """KL(previous ‖ current) over the candidates of each draw, both sides, mean over the rows."""
    total = 0.0
    for draw in draws:
        p, q = softmax(draw.scores(previous)), softmax(draw.scores(score))
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    return total / (len(draws) / 2)


def deletion(score: Score, rows: list[Row]) -> float:
    """Binary cross-entropy with label 0, mean over the rows."""
    return sum(-math.log(1 - 1 / (1 + math.exp(-score(row)))) for row in rows) / len(rows)


def drift(now: list[Vector], before: list[Vector], known: Iterable[int], squares: bool) -> float:
    """The change of one table's known rows."""
    total = sum((a - b) ** 2 for i in known for a, b in zip(now[i], before[i], strict=True))
    return total if squares else math.sqrt(total)


def project(gradient: Vector, reference: Vector) -> Vector:
    """A-GEM on one row: what points against the reference is taken out."""
    along = sum(g * ref for g, ref in zip(gradient, reference, strict=True))
    if along >= 0:
        return gradient
    norm = sum(ref * ref for ref in reference)
    return [g - along / norm * ref for g, ref in zip(gradient, reference, strict=True)]
