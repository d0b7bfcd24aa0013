"""Datasets, models and strategies by name: what a command line or a configuration file says."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tkg_incremental.datasets import SyntheticTKG, TKGDataset, Wikidata12k, WorldLeaders, YAGO11k
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.zoo import ZOO
from tkg_incremental.strategies import AGEM, FB, FT, TIE, TR, FBFuture, Strategy, Supersede

#: Datasets that need nothing but a folder. A user's own facts come in with ``TabularTKG``.
DATASETS: dict[str, type[TKGDataset]] = {
    "WorldLeaders": WorldLeaders,
    "Wikidata12k": Wikidata12k,
    "YAGO11k": YAGO11k,
    "SyntheticTKG": SyntheticTKG,
}


class Size(NamedTuple):
    """What a dataset counts as published, without opening it."""

    entities: int
    relations: int
    steps: int
    train: int
    val: int
    test: int


class About(NamedTuple):
    """What a dataset is, in a line, and how large."""

    summary: str
    size: Size


ABOUT: dict[str, About] = {
    "WorldLeaders": About("who led which country; comes with the package", Size(990, 11, 75, 53181, 3748, 3851)),
    "Wikidata12k": About(
        "facts of Wikidata with intervals; downloaded when first used", Size(12554, 24, 78, 257542, 20764, 19746)
    ),
    "YAGO11k": About(
        "facts of YAGO with intervals; downloaded when first used", Size(10623, 10, 61, 215894, 23197, 22567)
    ),
    "SyntheticTKG": About("made up, with a structure one can learn", Size(1000, 10, 20, 40000, 3993, 4030)),
}
MODELS: dict[str, type[TKGModel]] = ZOO
STRATEGIES: dict[str, type[Strategy]] = {
    "ft": FT,
    "tr": TR,
    "tie": TIE,
    "fb": FB,
    "fb_future": FBFuture,
    "agem": AGEM,
    "supersede": Supersede,
}


def make_dataset(name: str, root: str | Path) -> TKGDataset:
    """A dataset by its name, kept in a folder of that name below ``root``."""
    kind: Any = _pick(DATASETS, name, "dataset")
    return kind(Path(root) / name)


def make_model(name: str, dataset: TKGDataset, hidden_channels: int = 128, **options: Any) -> TKGModel:
    """A model of the zoo by its name, made for a dataset."""
    return _pick(MODELS, name, "model").from_dataset(dataset, hidden_channels, **options)


def takes(model: str, option: str) -> bool:
    """Whether a model of the zoo has an option."""
    return option in inspect.signature(_pick(MODELS, model, "model")).parameters


def make_strategy(name: str, **options: Any) -> Strategy:
    """A strategy by its name, with those of ``options`` it knows; a replay sampling means nothing to fine-tuning."""
    kind: Any = _pick(STRATEGIES, name, "strategy")
    known = inspect.signature(kind.__init__).parameters
    return kind(**{key: value for key, value in options.items() if key in known})


def _pick(choices: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in choices:
        raise ValueError(f"{what} must be one of {', '.join(choices)} (got {name!r})")
    return choices[name]
