"""Calibration: probabilities from scores, and how well they agree with frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Calibration:
    r"""Logistic regression on features of an answer (Platt scaling), then isotonic regression of its output.

    .. math:: p = f(\sigma(\mathbf{w}^\top \mathbf{x} + b))

    with :math:`f` piecewise linear and increasing between its knots. Without knots, :math:`f` is the identity.

    Args:
        weights: One weight per feature.
        bias: The bias :math:`b`.
        knots: Pairs (output of the logistic regression, probability), ascending in both.
    """

    weights: tuple[float, ...]
    bias: float
    knots: tuple[tuple[float, float], ...] = ()

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor, penalty: float = 1e-4, isotonic: bool = True) -> Calibration:
        """Fits the weights by maximum likelihood, then the knots by least squares.

        Args:
            features: ``[n, f]``.
            labels: ``[n]`` 1 for facts that hold, 0 for others.
            penalty: Weight of the L2 penalty on standardized features.
            isotonic: Whether to fit knots.
        """
        if len(features) == 0 or len(torch.unique(labels)) < 2:
            raise ValueError("labels must contain facts that hold and facts that do not")
        x, y = features.double(), labels.double()
        mean, scale = x.mean(0), x.std(0).clamp(min=1e-6)
        parameters = logistic_regression((x - mean) / scale, y, penalty)
        slopes = parameters[:-1] / scale
        linear = cls(tuple(slopes.tolist()), float(parameters[-1] - (slopes * mean).sum()))
        if not isotonic:
            return linear
        return replace(linear, knots=isotonic_knots(linear(x), y))

    def __call__(self, features: Tensor) -> Tensor:
        """Probabilities, ``[*, f] → [*]``."""
        weights = torch.tensor(self.weights, dtype=torch.double, device=features.device)
        p = torch.sigmoid(features.double() @ weights + self.bias)
        return interpolate(p, self.knots) if self.knots else p

    def to_dict(self) -> dict[str, Any]:
        return {"weights": list(self.weights), "bias": self.bias, "knots": [list(knot) for knot in self.knots]}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Calibration:
        knots = tuple((float(x), float(y)) for x, y in state["knots"])
        return cls(tuple(float(weight) for weight in state["weights"]), float(state["bias"]), knots)


@dataclass(frozen=True)
class AnswerCalibration:
    """The calibrations of a model's answers. A probability means one of two things.

    Of a predicted answer, it is the share of such answers that turned out to be true: fitted on facts that the model
    was not trained on, asked in both directions, on questions without an answer, and on further answers to questions
    that have a known one. Of a known fact, it is how clearly the model scores the fact above the best wrong answer:
    fitted on facts that the model was trained on, with 1 in 100 known facts taken to be a mistake. A known fact with a
    low probability is one that the model did not learn.

    Args:
        predicted: For answers that are not known facts; :obj:`None` if there were no facts to fit it on.
        known: For known facts.
        unit: By how much known facts outscore the mean candidate. Features are in this unit, because further training
            stretches all scores.
    """

    predicted: Calibration | None = None
    known: Calibration | None = None
    unit: float = 1.0

    def predict(self, features: Tensor, limits: Tensor) -> Tensor:
        """Probabilities of predicted answers, ``[*, f] → [*]``; NaN if they were not calibrated.

        Args:
            features: ``[*, f]``.
            limits: ``[*]`` the expected number of answers of their questions beyond the known ones. Scores alone do not
                tell whether there is another answer, and no candidate is more probable than that there is one.
        """
        if self.predicted is None:
            return torch.full_like(limits, torch.nan, dtype=torch.double)
        return torch.minimum(self.predicted(features), limits.double())

    def to_dict(self) -> dict[str, Any]:
        parts = {"predicted": self.predicted, "known": self.known}
        return {**{name: part and part.to_dict() for name, part in parts.items()}, "unit": self.unit}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> AnswerCalibration:
        predicted, known = (state[name] and Calibration.from_dict(state[name]) for name in ("predicted", "known"))
        return cls(predicted, known, float(state["unit"]))


def logistic_regression(features: Tensor, labels: Tensor, penalty: float, max_iter: int = 100) -> Tensor:
    r"""Weights and bias ``[f + 1]`` that minimize the mean cross-entropy plus
    :math:`\lambda \lVert \mathbf{w} \rVert^2`, by Newton's method with step halving.

    Args:
        features: ``[n, f]``.
        labels: ``[n]`` 0 or 1, both of which occur.
        penalty: The weight :math:`\lambda` of the penalty, which must be positive.
        max_iter: Maximum number of steps.
    """
    x = torch.cat([features, torch.ones_like(features[:, :1])], 1)
    ridge = torch.full_like(x[0], 2 * penalty)
    ridge[-1] = 0.0

    def loss(parameters: Tensor) -> float:
        penalized = (ridge * parameters.square()).sum() / 2
        return float(F.binary_cross_entropy_with_logits(x @ parameters, labels) + penalized)

    parameters = torch.zeros_like(ridge)
    for _ in range(max_iter):
        p = torch.sigmoid(x @ parameters)
        gradient = x.t() @ (p - labels) / len(x) + ridge * parameters
        # The small number keeps the matrix regular where all probabilities are 0 or 1.
        hessian = (x.t() * (p * (1 - p))) @ x / len(x) + torch.diag(ridge + 1e-9)
        step, before = torch.linalg.solve(hessian, gradient), loss(parameters)
        while loss(parameters - step) > before and float(step.abs().max()) > 1e-9:
            step = step / 2
        parameters = parameters - step
        if float(step.abs().max()) < 1e-7:
            break
    return parameters


def isotonic_regression(values: Sequence[float]) -> list[tuple[float, int]]:
    """The ascending sequence nearest to ``values`` by least squares, as runs (mean, length): pool adjacent violators.

    >>> isotonic_regression([0.0, 1.0, 0.0, 1.0])
    [(0.0, 1), (0.5, 2), (1.0, 1)]
    """
    runs: list[tuple[float, int]] = []
    for value in values:
        mean, length = float(value), 1
        while runs and runs[-1][0] >= mean:
            before, count = runs.pop()
            mean, length = (before * count + mean * length) / (count + length), count + length
        runs.append((mean, length))
    return runs


def isotonic_knots(outputs: Tensor, labels: Tensor, size: int = 30) -> tuple[tuple[float, float], ...]:
    """Knots of an isotonic regression of ``labels`` on ``outputs``, each ``[n]``.

    The answers are sorted by output and cut into groups of about ``size``. The share of facts that hold in a group is
    smoothed by half a fact that holds and half a fact that does not, so no probability is 0 or 1.
    """
    order = torch.argsort(outputs, stable=True)
    groups = max(1, len(order) // size)
    x = [part.mean().item() for part in outputs[order].double().tensor_split(groups)]
    y = [(part.sum().item() + 0.5) / (len(part) + 1) for part in labels[order].double().tensor_split(groups)]
    knots, begin = [], 0
    for mean, length in isotonic_regression(y):
        knots.append((sum(x[begin : begin + length]) / length, mean))
        begin += length
    return tuple(knots)


def interpolate(values: Tensor, knots: Sequence[tuple[float, float]]) -> Tensor:
    """Piecewise linear through ``knots``, constant outside, ``[*] → [*]``.

    >>> interpolate(torch.tensor([0.0, 0.5, 2.0]), [(0.0, 0.1), (1.0, 0.3)])
    tensor([0.1000, 0.2000, 0.3000])
    """
    x, y = torch.tensor(knots, dtype=values.dtype, device=values.device).t().contiguous()
    if len(x) == 1:
        return y.expand_as(values).clone()
    right = torch.searchsorted(x, values.contiguous()).clamp(1, len(x) - 1)
    share = ((values - x[right - 1]) / (x[right] - x[right - 1]).clamp(min=1e-12)).clamp(0, 1)
    return y[right - 1] + share * (y[right] - y[right - 1])


def brier_score(probabilities: Tensor, labels: Tensor) -> float:
    r"""Brier score, :math:`\frac{1}{n} \sum_i (p_i - y_i)^2`. Lower is better.

    >>> brier_score(torch.tensor([1.0, 0.5]), torch.tensor([1, 0]))
    0.125
    """
    return float((probabilities.double() - labels.double()).square().mean())


def reliability(probabilities: Tensor, labels: Tensor, bins: int = 10) -> list[tuple[float, float, int]]:
    """Mean probability, share of facts that hold, and number of answers, for bins of equal width; empty bins are left
    out.

    >>> reliability(torch.tensor([0.1, 0.9, 0.9]), torch.tensor([0, 1, 0]), bins=2)
    [(0.1, 0.0, 1), (0.9, 0.5, 2)]
    """
    place = (probabilities * bins).long().clamp(0, bins - 1)
    rows = []
    for number in range(bins):
        inside = place == number
        if inside.any():
            p, y = probabilities[inside].double(), labels[inside].double()
            rows.append((round(float(p.mean()), 6), float(y.mean()), int(inside.sum())))
    return rows


def expected_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = 10) -> float:
    r"""ECE, :math:`\sum_b \frac{n_b}{n} \lvert \bar{p}_b - \bar{y}_b \rvert` over bins of equal width.

    >>> expected_calibration_error(torch.tensor([0.5, 0.5]), torch.tensor([1, 0]))
    0.0
    """
    total = len(probabilities)
    return sum(count / total * abs(p - y) for p, y, count in reliability(probabilities, labels, bins))
