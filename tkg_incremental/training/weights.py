"""The weights before a step and those of its best epoch."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.optim import TouchedRows


class WholeWeights:
    """Copies of all weights, for optimizers that move every row at every update.

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


class RowWeights:
    """Former values of touched rows, for row-wise optimizers.

    Args:
        model: The model about to learn.
    """

    def __init__(self, model: TKGModel) -> None:
        self.rows: TouchedRows = model.encoder.make_touched_rows()
        self.previous = model.frozen_view(self.rows)
        self.save, self.restore = self.rows.save, self.rows.restore
        self.state_dict, self.load_state_dict = self.rows.state_dict, self.rows.load_state_dict


#: Keeps the model before a step, and saves and restores its weights.
FormerWeights = WholeWeights | RowWeights
