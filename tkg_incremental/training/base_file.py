"""A base model in a file of its own, which several runs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from tkg_incremental.distributed.world import World
from tkg_incremental.models.base import TKGModel
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified
from tkg_incremental.training.fingerprint import refuse_other
from tkg_incremental.training.run_folder import RunFolderError


class BaseFile:
    """The file of a base model.

    Args:
        path: The file.
        about: What the base model is of: one that was made otherwise is refused.
    """

    def __init__(self, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
        self.path, self.about = Path(path), about

    def exists(self) -> bool:
        return self.path.exists()

    def save(self, model: TKGModel) -> None:
        """Leaves the model there, whole or not at all."""
        save_verified({"about": self.about, "weights": model.state_dict()}, self.path)

    def load(self, model: TKGModel, world: World) -> None:
        """Gives a model the weights that were left there, in all processes."""
        state = world.load(lambda: self._read(model.device), model.device)
        try:
            model.load_state_dict(state["weights"])
        except RuntimeError as error:
            raise RunFolderError(f"the base model '{self.path}' does not fit this model: {error}") from error

    def _read(self, device: torch.device) -> dict[str, Any]:
        state = load_verified(self.path, device)
        if not isinstance(state, dict) or not state.keys() >= {"about", "weights"}:
            raise CorruptFileError(self.path, "it is no base model")
        refuse_other(state["about"], self.about, f"the base model '{self.path}'")
        return state

    def __repr__(self) -> str:
        return f"BaseFile({str(self.path)!r})"
