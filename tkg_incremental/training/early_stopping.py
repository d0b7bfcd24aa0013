"""When to stop a step: a pure state machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class EarlyStopping:
    """Stops once the best value is ``patience`` epochs old. Epochs without a value do not count until the next value.

    Args:
        patience: How many epochs to wait for something better. With :obj:`None` it never stops, and the last epoch
            counts as the best.
        best: Best value so far; higher is better.
        best_epoch: When it came.
        last_epoch: Epoch of the last value.
    """

    patience: int | None = 20
    best: float = float("-inf")
    best_epoch: int = 0
    last_epoch: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience must be at least 1 (got {self.patience})")

    def update(self, value: float, epoch: int) -> bool:
        """Takes the value of an epoch; whether it is the best so far."""
        self.last_epoch = epoch
        if value > self.best or self.best_epoch == 0 or self.patience is None:
            self.best, self.best_epoch = value, epoch
            return True
        return False

    def is_over(self) -> bool:
        """Whether the epoch just ended is the last."""
        return self.patience is not None and self.last_epoch - self.best_epoch >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> EarlyStopping:
        return cls(**state)
