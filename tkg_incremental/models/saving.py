"""Models in files: weights, names and times together, so that a query needs nothing else."""

from __future__ import annotations

import os
from typing import Any

import torch

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.zoo import ZOO
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified


def can_save(model: TKGModel) -> bool:
    """Whether :func:`load_model` could construct a saved model again."""
    return ZOO.get(type(model).__name__) is type(model)


def save_model(model: TKGModel, path: str | os.PathLike[str]) -> None:
    """Saves a model with its names. The file is written atomically.

    Args:
        model: The model.
        path: The file.
    """
    state: dict[str, Any] = {
        "model": type(model).__name__,
        "options": model.options,
        "sizes": model.sizes,
        "weights": model.state_dict(),
        "catalog": model.catalog.state() if model.catalog is not None else None,
    }
    save_verified(state, path)


def load_model(
    path: str | os.PathLike[str], device: str | torch.device = "cpu", model: TKGModel | None = None
) -> TKGModel:
    """Loads what :func:`save_model` wrote. No code in the file is executed.

    Args:
        path: The file.
        device: Where to put the model.
        model: A model of the same sizes to load the weights into, for models that are not in the zoo.
    """
    state = load_verified(path, map_location=device)
    parts = {"model", "options", "sizes", "weights", "catalog"}
    if not isinstance(state, dict) or not state.keys() >= parts:
        raise CorruptFileError(path, "it is no saved model")
    is_new = model is None
    if model is None:
        model = _construct(state, path)
    _check_weights(model, state["weights"], path)
    try:
        # The model takes the tensors of the file as its parameters: no second copy, and none to overwrite.
        model.load_state_dict(state["weights"], assign=is_new)
        if state["catalog"] is not None:
            model.catalog = Catalog.from_state(state["catalog"])
    except (RuntimeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptFileError(path, f"its contents do not fit a model: {error!r}") from error
    return model.to(device).eval()


def _construct(state: dict[str, Any], path: str | os.PathLike[str]) -> TKGModel:
    name, sizes, options = state["model"], state["sizes"], state["options"]
    if name not in ZOO:
        raise TypeError(
            f"'{path}' is a {name!r}, which is not in the zoo ({', '.join(ZOO)}): construct one of the same sizes and "
            "pass it as load_model(path, model=…)"
        )
    try:
        relations = sizes["relation"] // (2 if options.get("reciprocal") else 1)
        with torch.device("meta"):  # no memory is allocated for sizes that the weights do not have
            model = ZOO[name](sizes["entity"], relations, sizes["time"], **options)
        _check_weights(model, state["weights"], path)
        if any(buffer.is_meta for buffer in model.buffers()):  # computed by the constructor, not saved
            model = ZOO[name](sizes["entity"], relations, sizes["time"], **options)
    except (RuntimeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptFileError(path, f"its contents do not fit a model: {error!r}") from error
    return model


def _check_weights(model: TKGModel, weights: Any, path: str | os.PathLike[str]) -> None:
    """Compares names, shapes, types and memory layout before anything is copied."""
    wanted = model.state_dict()
    if not isinstance(weights, dict) or weights.keys() != wanted.keys():
        raise CorruptFileError(path, "its weights have other names than the model's")
    for name, value in weights.items():
        expected = wanted[name]
        if not isinstance(value, torch.Tensor) or value.shape != expected.shape or value.dtype != expected.dtype:
            found = f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise CorruptFileError(path, f"{name} must be {expected.dtype} {list(expected.shape)} (got {found})")
        if not value.is_contiguous():
            raise CorruptFileError(path, f"{name} must be contiguous (got strides {value.stride()})")
