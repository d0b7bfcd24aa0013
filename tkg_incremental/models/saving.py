"""Models in files: weights, names and times in one, so that a query needs nothing else."""

from __future__ import annotations

import os
from typing import Any

import torch

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.zoo import ZOO
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified


def save_model(model: TKGModel, path: str | os.PathLike[str]) -> None:
    """Saves a model of the zoo with its names; the file is whole or not there."""
    if type(model).__name__ not in ZOO:
        raise TypeError(f"model must be one of the zoo, {', '.join(ZOO)} (got {type(model).__name__})")
    state: dict[str, Any] = {
        "model": type(model).__name__,
        "options": model.options,
        "sizes": model.encoder.sizes,
        "weights": model.state_dict(),
        "catalog": model.catalog.state() if model.catalog is not None else None,
    }
    save_verified(state, path)


def load_model(path: str | os.PathLike[str], device: str | torch.device = "cpu") -> TKGModel:
    """Loads what :func:`save_model` wrote. No code of the file is run.

    Args:
        path: The file.
        device: Where to put the model.
    """
    state = load_verified(path, map_location=device)
    if not isinstance(state, dict) or state.get("model") not in ZOO:
        found = state.get("model") if isinstance(state, dict) else type(state).__name__
        raise CorruptFileError(path, f"expected a model of the zoo ({', '.join(ZOO)}; got {found!r})")
    sizes = state["sizes"]
    model = ZOO[state["model"]](sizes["entity"], sizes["relation"], sizes["time"], **state["options"])
    model.load_state_dict(state["weights"])
    if state["catalog"] is not None:
        model.catalog = Catalog.from_state(state["catalog"])
    return model.to(device).eval()
