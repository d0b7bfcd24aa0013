"""Datasets, models and strategies by name, for command lines and configuration files.

The tables are plain names, so that they can be listed without importing torch.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tkg_incremental.datasets import TKGDataset
    from tkg_incremental.models import TKGModel
    from tkg_incremental.strategies import Strategy


class DatasetInfo(NamedTuple):
    """A dataset in one line, its sizes as published (quads per split), and where it comes from.

    ``kind`` is ``"intervals"`` if facts hold for a while, or ``"events"`` if each holds at one step.
    """

    summary: str
    entities: int
    relations: int
    steps: int
    train: int
    val: int
    test: int
    kind: str
    license: str
    source: str


_ATISE = "https://github.com/soledad921/ATISE"
_ICEWS = "https://doi.org/10.7910/DVN/28075"
#: Datasets that need nothing but a folder. Your own facts are read by :class:`~tkg_incremental.datasets.TabularTKG`.
DATASETS: dict[str, DatasetInfo] = {
    "WorldLeaders": DatasetInfo(
        "leaders of countries; included in the package", 990, 11, 75, 53181, 3748, 3851,
        "intervals", "MIT", "this package",
    ),
    "Wikidata12k": DatasetInfo(
        "facts of Wikidata; downloaded on first use", 12554, 24, 78, 257542, 20764, 19746,
        "intervals", "CC0 (Wikidata); files: MIT", _ATISE,
    ),
    "YAGO11k": DatasetInfo(
        "facts of YAGO; downloaded on first use", 10623, 10, 61, 215894, 23197, 22567,
        "intervals", "CC BY (YAGO 3); files: MIT", _ATISE,
    ),
    "ICEWS14": DatasetInfo(
        "political events of 2014; downloaded on first use", 7128, 230, 365, 72826, 8941, 8963,
        "events", "terms of the ICEWS Dataverse", _ICEWS,
    ),
    "ICEWS0515": DatasetInfo(
        "political events of 2005 to 2015; downloaded on first use", 10488, 251, 4017, 368962, 46275, 46092,
        "events", "terms of the ICEWS Dataverse", _ICEWS,
    ),
    "SyntheticTKG": DatasetInfo(
        "generated, with a structure that can be learnt", 1000, 10, 20, 40000, 3993, 4030,
        "intervals", "MIT", "this package",
    ),
}  # fmt: skip
#: Models of the zoo.
MODELS = ("DE", "HyTE", "Static", "TComplEx", "TNTComplEx", "ChronoR", "TTransE", "TeRo", "CalendarDE")
#: Strategies: class and summary.
STRATEGIES = {
    "ft": ("FT", "fine-tuning on the added facts"),
    "tr": ("TR", "ft with temporal regularization towards the step before"),
    "tie": ("TIE", "tr with replay of past facts and a loss for deleted facts"),
    "fb": ("FB", "full batch: all facts of the last steps; slow, a skyline"),
    "fb_future": ("FBFuture", "all facts of all steps at once, future ones included; a skyline"),
    "agem": ("AGEM", "tie with A-GEM's gradient projection instead of the replay loss"),
    "supersede": ("Supersede", "tie with a contrast between current facts and the facts they replaced"),
}
DECODERS = ("complex", "distmult", "simple", "transe")


def make_dataset(name: str, root: str | Path) -> TKGDataset:
    """A dataset by its name, stored in a folder of that name below ``root``."""
    check_name(name, DATASETS, "dataset")
    return getattr(import_module("tkg_incremental.datasets"), name)(Path(root) / name)


def make_model(name: str, dataset: TKGDataset, hidden_channels: int = 128, **options: Any) -> TKGModel:
    """A model by its name, for a dataset."""
    check_name(name, MODELS, "model")
    return getattr(import_module("tkg_incremental.models"), name).from_dataset(dataset, hidden_channels, **options)


def make_strategy(name: str, **options: Any) -> Strategy:
    """A strategy by its name."""
    check_name(name, STRATEGIES, "strategy")
    return getattr(import_module("tkg_incremental.strategies"), STRATEGIES[name][0])(**options)


def check_name(name: str, known: Iterable[str], what: str) -> None:
    """Raises an error that suggests the nearest names."""
    names = list(known)
    if name not in names:
        raise ValueError(f"{what} must be one of {', '.join(names)} (got {name!r}{did_you_mean(name, names)})")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the nearest names, or nothing.

    >>> did_you_mean("trian", ["train", "query"])
    '; did you mean train?'
    """
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""
