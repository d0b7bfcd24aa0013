"""A model on facts as intervals of years, ranked as in TimePlex's paper: `python examples/timeplex.py --help`.

Steps are the years at which facts begin or end. A date without a year of four digits is open; a fact without any date
holds at the first step.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from tkg_incremental.cli.options import RunOptions
from tkg_incremental.cli.run import make_trainer
from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets import Wikidata12k, YAGO11k
from tkg_incremental.datasets.atise import SPLIT_FILES, ATISEDataset, read_facts
from tkg_incremental.datasets.base import Graph
from tkg_incremental.datasets.lines import read_names
from tkg_incremental.metrics import hits_at, interval_ranks, mean_reciprocal_rank


class Years(ATISEDataset):
    """A benchmark in years, with all its facts."""

    variant = "years"

    def build(self) -> Graph:
        self.download()
        raw = Path(self.raw_dir)
        entities, relations = (read_names(raw / f"{name}2id.txt") for name in ("entity", "relation"))
        facts = {split: read_facts(raw / name, len(entities), len(relations)) for split, name in SPLIT_FILES.items()}
        axis = TimeAxis.from_instants(
            year for rows in facts.values() for fact in rows for year in fact[3:] if _is(year)
        )
        splits = {split: torch.tensor([interval(fact, axis) for fact in rows]) for split, rows in facts.items()}
        return Graph(splits, entities, relations, axis)


class Wikidata12kYears(Years, Wikidata12k):
    pass


class YAGO11kYears(Years, YAGO11k):
    pass


def _is(year: int | None) -> bool:
    return year is not None and year >= 0


def interval(fact: tuple[Any, ...], axis: TimeAxis) -> tuple[int, ...]:
    """A fact (head, rel, tail, first, last) in steps. An end before the start counts as the start."""
    *triple, start, end = fact
    first = axis.step_of(start) if _is(start) else 0
    if _is(end):
        return *triple, first, max(first, axis.step_of(end))
    return *triple, first, axis.num_steps - 1 if _is(start) else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=("Wikidata12k", "YAGO11k"))
    parser.add_argument("--root", default="data", help="folder of the datasets")
    parser.add_argument("--model", default="TNTComplEx")
    parser.add_argument("--width", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--cooldown", type=int, default=8)
    parser.add_argument("--n3", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="rank test facts, too, not validation facts alone")
    given = parser.parse_args()
    dataset = {"Wikidata12k": Wikidata12kYears, "YAGO11k": YAGO11kYears}[given.dataset](
        Path(given.root) / given.dataset
    )
    print(dataset)
    options = RunOptions(
        protocol="joint", model=given.model, hidden_channels=given.width, reciprocal=True, optimizer="adagrad", lr=0.1,
        batch_size=1000, base_epochs=given.epochs, cooldown=given.cooldown, base_visits=1, base_negatives=1000,
        shared_negatives=True, n3=given.n3, smoothness=0.1, patience=0, validate_every=given.epochs, seed=given.seed,
    )  # fmt: skip
    trainer = make_trainer(options, dataset)
    trainer.pretrain()
    for split in ("val", "test") if given.test else ("val",):
        ranks = interval_ranks(trainer.model, trainer.timeline, split)
        hits = ", ".join(f"Hits@{k} {hits_at(ranks, k):.2f}" for k in (1, 3, 10))
        print(f"{split}: MRR {mean_reciprocal_rank(ranks):.2f}, {hits}", flush=True)


if __name__ == "__main__":
    main()
