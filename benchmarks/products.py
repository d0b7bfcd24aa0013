"""``python -m benchmarks.products``: training of product models beside their bare matrix products, in CPU seconds.

The models are those whose entities do not depend on time, so that a batch is a product with one table of candidates.
The least that a batch needs are three products: scores, and the gradients of queries and of candidates. The rest is
looking up rows, the softmax with true answers masked, N3, smoothness and Adagrad. Some batches of both are timed in
turn. (DE, whose tables differ by step, is ``training/base-de`` of ``python -m benchmarks``.)
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import islice
from statistics import median
from typing import Any

import torch

from tkg_incremental import IncrementalTrainer, LearningSettings
from tkg_incremental.datasets import TKGDataset
from tkg_incremental.loader import TKGBatch
from tkg_incremental.ops.memory import keep_freed_memory
from tkg_incremental.registry import make_dataset, make_model
from tkg_incremental.strategies import Strategy
from tkg_incremental.strategies.terms import Negatives
from tkg_incremental.training import BaseSettings, StepLearner, TrainerSettings

MODELS = ("Static", "TComplEx", "TNTComplEx", "ChronoR")
# Rows of one product.
_PIECE = 256


def make_learner(model: str, dataset: TKGDataset, width: int, batch_size: int, negatives: Negatives) -> StepLearner:
    """The learner of ``train --protocol joint`` with the settings of ``configs/icews14-*.toml``."""
    learning = LearningSettings(optimizer="adagrad", lr=0.1, batch_size=batch_size, max_norm=None, n3=0.01)
    if model != "Static":  # it has no rows of steps
        learning = LearningSettings(**{**vars(learning), "smoothness": 0.01})
    shared = False if negatives == "all" else "batch"
    base = BaseSettings(negatives=negatives, shared=shared, candidates="last")  # type: ignore[arg-type]
    strategy = Strategy([], "joint")
    strategy.sees_future = True
    made = make_model(model, dataset, width, reciprocal=True)
    settings = TrainerSettings(learning, base)
    return IncrementalTrainer(made, dataset, strategy, device="cpu", settings=settings, callbacks=[]).base_learner()


def train(learner: StepLearner, batches: list[TKGBatch]) -> None:
    """What an epoch does with its batches."""
    learner.model.train()
    for batch in batches:
        losses = learner.losses(batch)
        learner.optimizer.zero_grad()
        learner._backward(losses)
        learner.optimizer.step()


def multiply(quads: int, candidates: int, width: int) -> None:
    """The three products of both queries of a batch."""
    query, table = torch.rand(2 * quads, width), torch.rand(candidates, width)
    scores, grad_table = torch.empty(_PIECE, candidates), torch.zeros_like(table)
    for piece in query.split(_PIECE):
        out = scores[: len(piece)]
        torch.mm(piece, table.t(), out=out)
        torch.mm(out, table)
        grad_table.addmm_(out.t(), piece)


def cpu_seconds(work: Any, *arguments: Any) -> float:
    begin = time.process_time()
    work(*arguments)
    return time.process_time() - begin


def compare(
    model: str, dataset: TKGDataset, width: int, batch_size: int, negatives: Negatives, rounds: int
) -> dict[str, Any]:
    """CPU seconds per batch, of training with the drawing of its negatives, and of the products; medians."""
    learner = make_learner(model, dataset, width, batch_size, negatives)
    candidates = dataset.num_entities if negatives == "all" else negatives
    loader = iter(learner.loader)
    train(learner, list(islice(loader, 2)))  # the first batches allocate the state of the optimizer
    ours, bare = [], []
    for _ in range(rounds):
        begin = time.process_time()
        batches = list(islice(loader, 2))
        drawing = time.process_time() - begin
        ours.append((drawing + cpu_seconds(train, learner, batches)) / 2)
        bare.append(cpu_seconds(multiply, len(batches[0]), candidates, width))
    ratio = median(a / b for a, b in zip(ours, bare, strict=True))
    epoch = {"epoch": median(ours) * len(learner.loader), "products of an epoch": median(bare) * len(learner.loader)}
    seconds = {name: round(value, 2) for name, value in epoch.items()}
    return {"model": model, "width": width, "candidates": candidates, **seconds, "ratio": round(ratio, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.products", description=__doc__)
    parser.add_argument("--dataset", default="ICEWS14")
    parser.add_argument("--root", default="data", help="where datasets are stored")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    keep_freed_memory()
    dataset = make_dataset(options.dataset, options.root)
    for model in options.models:
        for negatives in ("all", 1000):
            row = compare(model, dataset, options.width, options.batch_size, negatives, options.rounds)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
