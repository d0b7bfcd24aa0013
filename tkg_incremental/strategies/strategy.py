"""A strategy: the terms of its loss, and how their gradients are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from tkg_incremental.metrics import Evaluator
from tkg_incremental.models.base import TKGModel
from tkg_incremental.strategies.terms import Losses, Term


class Strategy:
    """What a model learns from at each step.

    Args:
        terms: The terms of the loss.
        name: How it is called in tables and reports.
    """

    #: Learns from all steps at once, instead of one after the other.
    sees_future = False
    #: Name of what :meth:`validate` gives.
    watches = "C@10"

    def __init__(self, terms: Iterable[Term], name: str | None = None) -> None:
        self.terms: Sequence[Term] = tuple(terms)
        self.name = name or type(self).__name__

    def backward(self, losses: Losses, parameters: Sequence[nn.Parameter]) -> None:
        """Puts gradients on the parameters. The one place to change what a gradient is."""
        total: Tensor = sum(losses.values())  # type: ignore[assignment]
        total.backward()

    def validate(self, evaluator: Evaluator, model: TKGModel, time: int) -> float:
        """What early stopping watches on validation rows of a step, higher is better; NaN without rows."""
        return evaluator.current(model, time)

    def __add__(self, terms: Iterable[Term]) -> Strategy:
        return Strategy([*self.terms, *terms], f"{self.name}+")

    def __repr__(self) -> str:
        inner = "".join(f"\n  {term!r}," for term in self.terms)
        return f"{self.name}([{inner}\n])" if inner else f"{self.name}([])"
