"""Calibration: probabilities from scores, and how well they agree with frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Calibration:
    r"""Logistic regression (Platt scaling) on features of an answer: :math:`p = \sigma(\mathbf{w}^\top \mathbf{x} + b)`.

    Args:
        weights: One weight per feature.
        bias: The bias :math:`b`.
    """

    weights: tuple[float, ...]
    bias: float

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor, weights: Tensor | None = None, penalty: float = 1e-3) -> Calibration:
        """Fits the weights by maximum likelihood.

        Args:
            features: ``[n, f]``.
            labels: ``[n]`` 1 for facts that hold, 0 for others.
            weights: ``[n]`` number of answers that each stands for; by default 1.
            penalty: Weight of the L2 penalty on standardized features.
        """
        if len(features) == 0 or len(torch.unique(labels)) < 2:
            raise ValueError("labels must contain facts that hold and facts that do not")
        x, y = features.double(), labels.double()
        mean, scale = x.mean(0), x.std(0).clamp(min=1e-6)
        z = (x - mean) / scale
        share = torch.ones_like(y) if weights is None else weights.double()
        share = share / share.sum()
        parameters = torch.zeros(x.size(1) + 1, dtype=torch.double, requires_grad=True)
        optimizer = torch.optim.LBFGS([parameters], max_iter=200, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(z @ parameters[:-1] + parameters[-1], y, share, reduction="sum")
            loss = loss + penalty * parameters[:-1].square().sum()
            loss.backward()
            return loss

        with torch.enable_grad():
            optimizer.step(closure)  # type: ignore[arg-type]
        slopes = parameters.detach()[:-1] / scale
        return cls(tuple(slopes.tolist()), float(parameters.detach()[-1] - (slopes * mean).sum()))

    def __call__(self, features: Tensor) -> Tensor:
        """Probabilities, ``[*, f] → [*]``."""
        logits = features.double() @ torch.tensor(self.weights, dtype=torch.double, device=features.device)
        return torch.sigmoid(logits + self.bias)

    def to_dict(self) -> dict[str, Any]:
        return {"weights": list(self.weights), "bias": self.bias}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Calibration:
        return cls(tuple(float(w) for w in state["weights"]), float(state["bias"]))


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
