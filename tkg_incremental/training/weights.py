"""The weights before a step and those of its best epoch, for optimizers that move every row."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tkg_incremental.models.base import TKGModel


class WholeWeights:
    """Copies of all weights. Row-wise optimizers keep touched rows instead:
    :class:`~tkg_incremental.optim.TouchedRows`.

    Args:
        model: The model about to learn.
    """

    def __init__(self, model: TKGModel) -> None:
        self._model = model
        self.previous = model.frozen_copy()
        self._saved: dict[str, Tensor] | None = None

    def save(self) -> None:
        self._saved = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}

    def restore(self) -> None:
        if self._saved is not None:
            self._model.load_state_dict(self._saved)

    def state_dict(self) -> dict[str, Any]:
        return {"previous": self.previous.state_dict(), "saved": self._saved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.previous.load_state_dict(state["previous"])
        self._saved = state["saved"]
