"""Measures several processes that work together, forks of one that has imported everything.

Usage: ``python -m benchmarks.group TASK PROCESSES OPTIONS``; the first process prints its results.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing import start_processes

from benchmarks import memory
from tkg_incremental import IncrementalTrainer, LearningSettings, datasets
from tkg_incremental.communicator import Communicator
from tkg_incremental.data import TimeAxis, Timeline
from tkg_incremental.distributed import connect, shard_entities
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE
from tkg_incremental.ops.memory import keep_freed_memory
from tkg_incremental.registry import make_model
from tkg_incremental.strategies import (
    FT,
    TIE,
    CrossEntropy,
    DeletedFacts,
    Replay,
    Replayed,
    ReplayOptions,
    Strategy,
    TemporalRegularization,
)
from tkg_incremental.training import StepLearner, TrainerSettings


def work(
    communicator: Communicator, dataset: str, root: str, options: dict[str, Any], sizes: dict[str, int], rounds: int
) -> Any:
    """Seconds of epochs of TIE with both optimizers, of 1-vs-all and of test passes, and the bytes an update sends."""
    keep_freed_memory()
    graph = getattr(datasets, dataset)(root, **options)
    step = graph.timeline.base_step
    replay = ReplayOptions(size=sizes["replay_size"], negatives=sizes["replay_negatives"])
    strategy = TIE(negatives=sizes["negatives"], replay=replay)
    model = make_model("DE", graph, sizes["hidden_channels"])
    found: dict[str, Any] = {"gradients": sum(table.nbytes for table in model.parameters())}

    def seconds(of: Callable[[], Any]) -> float:
        communicator.mean(torch.zeros(1))  # all processes begin together
        begin = time.perf_counter()
        of()
        return time.perf_counter() - begin

    kinds: dict[str, tuple[Strategy, str]] = {
        "rowwise": (strategy, "rowwise"),
        "published": (strategy, "published"),
        "one-vs-all": (FT("all", negatives="all"), "rowwise"),
    }
    for name, (learnt, optimizer) in kinds.items():
        settings = TrainerSettings(LearningSettings(optimizer=optimizer))
        trainer = IncrementalTrainer(
            model, graph, learnt, device="cpu", settings=settings, callbacks=[], communicator=communicator
        )
        learner = trainer.learner(step)
        learner._train()
        before = getattr(communicator, "sent", 0)
        found[name] = [seconds(learner._train) for _ in range(rounds)]
        updates = rounds * len(learner.loader)
        found[f"{name} sent"] = (getattr(communicator, "sent", 0) - before) / updates
    evaluator = Evaluator(graph.timeline, communicator=communicator)
    found["evaluation"] = [seconds(lambda: evaluator.evaluate(model, step)) for _ in range(rounds)]
    return found


def sharded(communicator: Communicator, entities: int, hidden_channels: int, negatives: int, tests: int) -> Any:
    """The peak memory of the largest process without its imports, and the results of batches and ranks."""
    memory.trim()
    baseline = memory.resident()
    memory.reset_peak()
    line = large_timeline(entities, tests)
    step = line.num_steps - 1
    terms = [
        CrossEntropy(negatives=negatives, shared=True),
        TemporalRegularization(),
        DeletedFacts(),
        Replay(Replayed(size=1000), 50, shared=True),
    ]
    model = shard_entities(lambda: DE(entities, line.num_relations, line.num_steps, hidden_channels), communicator)
    learner = StepLearner(
        model,
        line,
        step,
        Strategy(terms, "TIE"),
        LearningSettings(),
        NegativeSampler(line),
        torch.Generator().manual_seed(0),
        lambda: 0.0,
        communicator,
    )
    losses = [learner._train() for _ in range(2)]
    trained = memory.peak() - baseline
    begin = time.perf_counter()
    losses.append(learner._train())
    seconds = time.perf_counter() - begin
    evaluator = Evaluator(line, communicator=communicator)
    begin = time.perf_counter()
    ranks = evaluator.rank(model, step)
    ranking = time.perf_counter() - begin
    assert ranks is not None
    local = torch.tensor([trained, memory.peak() - baseline])
    peaks = torch.stack(communicator.gather(local[None]), dim=0).amax(0).squeeze(0).tolist()
    return {
        "baseline": baseline,
        "training": peaks[0],
        "peak": peaks[1],
        "quads": learner.loader.num_quads,
        "updates": len(learner.loader),
        "seconds": seconds,
        "ranks": len(ranks.filtered),
        "ranking": ranking,
        "sent": getattr(communicator, "sent", 0),
        "losses": losses,
        "mean rank": float(ranks.filtered.double().mean()),
    }


def large_timeline(entities: int, tests: int) -> Timeline:
    """Every entity has one fact at the first of three steps; a few facts begin and end at the others."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randperm(entities, generator=generator)[: entities // 2 * 2].view(-1, 2)
    rel = torch.randint(10, (len(pairs),), generator=generator)
    first = torch.stack([pairs[:, 0], rel, pairs[:, 1], torch.zeros_like(rel)], dim=1)

    def some(count: int, time: int) -> torch.Tensor:
        ends = torch.randint(entities, (count, 2), generator=generator)
        rel = torch.randint(10, (count,), generator=generator)
        return torch.stack([ends[:, 0], rel, ends[:, 1], torch.full((count,), time)], dim=1)

    changed = [some(1000, 1), some(1000, 2)]
    splits = {"train": torch.cat([first, *changed]), "val": some(0, 2), "test": some(tests, 2)}
    return Timeline.from_quads(splits, entities, 10, TimeAxis.from_instants(range(3), "index"))


TASKS: dict[str, Callable[..., Any]] = {"work": work, "sharded": sharded}


# The processes -----------------------------------------------------------------------------------------


def run_group(task: str, processes: int, threads: int, **options: Any) -> dict[str, Any]:
    """The results of the first of several processes.

    Args:
        task: One of ``TASKS``.
        processes: Number of processes.
        threads: Threads of torch in each of them.
        **options: Arguments of the task.
    """
    command = [sys.executable, "-m", "benchmarks.group", task, str(processes), json.dumps(options)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    if task == "sharded":  # freed memory goes back to the system, so that the peak is what was needed
        environment["MALLOC_MMAP_THRESHOLD_"] = str(memory.MB)
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def _process(rank: int, task: str, processes: int, port: int, options: dict[str, Any]) -> None:
    addresses = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ.update(addresses, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(processes))
    communicator = connect()
    found = TASKS[task](communicator, **options)
    if communicator.is_first:
        print(json.dumps(found), flush=True)
    communicator.shutdown()


def main() -> None:
    task, processes, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    start_processes(_process, (task, processes, port, options), processes, start_method="fork")


if __name__ == "__main__":
    main()
