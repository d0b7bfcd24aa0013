"""A strategy: the terms of its loss, and how their gradients are combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from tkg_incremental.metrics import Evaluator
from tkg_incremental.models.base import TKGModel
from tkg_incremental.strategies.terms import Losses, Term


class Strategy:
    """What a model learns at each step.

    Args:
        terms: The terms of the loss. The names of their losses must differ.
        name: Name in tables and reports.
        sees_future: Learn all steps at once, instead of one after the other.
    """

    #: Name of what :meth:`validate` returns.
    validation_metric = "C@10"

    def __init__(self, terms: Iterable[Term], name: str | None = None, sees_future: bool = False) -> None:
        self.terms: Sequence[Term] = tuple(terms)
        self.sees_future = sees_future
        self.name = name or type(self).__name__
        names = Counter(loss for term in self.terms for loss in term.loss_names)
        for loss, count in names.items():
            if count > 1:
                raise ValueError(f"losses must have different names (got {loss!r} {count} times in {self.name})")

    def backward(self, losses: Losses, parameters: Sequence[nn.Parameter]) -> None:
        """Puts gradients on the parameters. Override this to change how gradients are combined."""
        total: Tensor = sum(losses.values())  # type: ignore[assignment]
        total.backward()

    def validate(self, evaluator: Evaluator, model: TKGModel, time: int) -> float:
        """What early stopping maximizes, on the validation quads of a step; NaN without quads."""
        return evaluator.current(model, time)

    def __add__(self, terms: Iterable[Term]) -> Strategy:
        return Strategy([*self.terms, *terms], f"{self.name}+")

    def __repr__(self) -> str:
        inner = "".join(f"\n  {term!r}," for term in self.terms)
        return f"{self.name}([{inner}\n])" if inner else f"{self.name}([])"
