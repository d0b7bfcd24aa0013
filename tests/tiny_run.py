"""A run of about a second from raw files to metrics, for tests that interrupt, damage or repeat it."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any, ClassVar

import torch
from runs import nameless

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets.atise import ATISEDataset
from tkg_incremental.models import DE, HyTE, load_model
from tkg_incremental.strategies import AGEM, TIE, ReplayOptions, Strategy
from tkg_incremental.training import BaseSettings, TrainerSettings

FIRST, YEARS, ENTITIES = 1990, 10, 30


def raw_files() -> dict[str, str]:
    """Every year has enough dates to be a step; the padding gives downloads of several chunks."""
    source = random.Random(0)

    def facts(count: int) -> str:
        lines = []
        for i in range(count):
            start = FIRST + i * YEARS // count
            end = source.choice([f"{start + 1 + source.randrange(3)}-##-##", "####-##-##"][: 1 + (i % 9 == 0)])
            head, rel, tail = source.randrange(ENTITIES), source.randrange(2), source.randrange(ENTITIES)
            lines.append(f"{head}\t{rel}\t{tail}\t{start}-##-##\t{end}\n")
        return "".join(lines)

    return {
        "entity2id.txt": "".join(f"entity {i}\t{i}\t{'padding ' * 1000}\n" for i in range(ENTITIES)),
        "relation2id.txt": "leads\t0\nlives in\t1\n",
        "train.txt": facts(1600),
        "valid.txt": facts(30),
        "test.txt": facts(40),
    }


FILES = raw_files()


class Tiny(ATISEDataset):
    """A benchmark of thirty entities."""

    folder: ClassVar[str] = "tiny"
    checksums: ClassVar[dict[str, str]] = {
        name: hashlib.sha256(content.encode()).hexdigest() for name, content in FILES.items()
    }


def write_mirror(folder: Path) -> Path:
    """Writes the raw files as a mirror for downloads."""
    (folder / "tiny").mkdir(parents=True)
    for name, content in FILES.items():
        (folder / "tiny" / name).write_bytes(content.encode())
    return folder


#: Both models, all optimizers, gradients of both kinds, negatives from a pool and from all entities.
CASES = ("DE rowwise", "HyTE published", "DE published", "HyTE rowwise", "DE rowwise A-GEM", "DE adagrad")


def learning_for(optimizer: str) -> LearningSettings:
    return LearningSettings(epochs=4, patience=2, batch_size=256, optimizer=optimizer, lr=0.02)


def settings_for(case: str, base: dict[str, Any] | None = None, **options: Any) -> TrainerSettings:
    """The settings of one of :data:`CASES`.

    Args:
        case: The case.
        base: Options of :class:`BaseSettings`.
        **options: Options of :class:`TrainerSettings`.
    """
    model, optimizer, *_ = case.split()
    defaults: dict[str, Any] = {
        "learning": learning_for(optimizer),
        "negative_pool": None if optimizer == "published" else 10,
        "checkpoint_every": 1,
    }
    negatives = {"negatives": "all" if model == "DE" else 20}
    return TrainerSettings(base=BaseSettings(**{**negatives, **(base or {})}), **{**defaults, **options})


def make_trainer(
    case: str,
    dataset: Tiny,
    run_dir: Path | None,
    settings: TrainerSettings | None = None,
    checkpoint_every: int = 1,
    **options: Any,
) -> IncrementalTrainer:
    """The trainer of one of :data:`CASES`."""
    model, _, *rest = case.split()
    strategy: Strategy = TIE(negatives=10, replay=ReplayOptions(size=200, negatives=5), window=3)
    if rest == ["A-GEM"]:
        strategy = AGEM(window=3, replay=ReplayOptions(size=200))
    return IncrementalTrainer(
        nameless({"DE": DE, "HyTE": HyTE}[model].from_dataset(dataset, hidden_channels=8)),
        dataset,
        options.pop("strategy", strategy),
        run_dir,
        **{
            "seed": 3,
            "device": "cpu",
            "settings": settings or settings_for(case, checkpoint_every=checkpoint_every),
            "callbacks": [],
            **options,
        },
    )


def outcome(run_dir: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The metrics of a run without its durations, and its weights."""
    metrics = json.loads((run_dir / "metrics.json").read_text())
    for record in [metrics["summary"], *metrics["steps"]]:
        del record["epoch_seconds"]
    return metrics, load_model(run_dir / "model.pt").state_dict()


def same_bits(one: Path, other: Path) -> bool:
    """Whether two runs have the same metrics and weights, to the last bit."""
    (metrics, weights), (others, theirs) = outcome(one), outcome(other)
    return (
        json.dumps(metrics) == json.dumps(others)
        and weights.keys() == theirs.keys()
        and all(torch.equal(weights[name].view(torch.int32), theirs[name].view(torch.int32)) for name in weights)
    )
