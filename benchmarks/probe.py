"""Measuring in a fresh process: for set-up times, imports, and memory of its own.

A probe is a generator of answers. Its process waits for a line before each answer after the first, so several
probes can be alive and asked in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Answers = Iterator[dict[str, float]]


# The probes: what they import is part of what they measure, so they import inside. ---------------------


def first_batch(dataset: str, root: str, options: dict[str, Any], hidden_channels: int) -> Answers:
    """Seconds of the imports, and from there to the losses of TIE's first batch, with the dataset in its cache."""
    begin = time.perf_counter()
    import torch

    torch_is_there = time.perf_counter()
    from tkg_incremental import IncrementalTrainer, datasets
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.registry import make_model
    from tkg_incremental.strategies import TIE, Step, Strategy, Term

    class Reached(Exception):
        pass

    class Alarm(Term):  # the last term of the loss: the others have been computed for the first batch
        def losses(self, step: Step, rows: torch.Tensor) -> dict[str, torch.Tensor]:
            raise Reached

    imported = time.perf_counter()
    keep_freed_memory()
    graph = getattr(datasets, dataset)(root, **options)
    model = make_model("DE", graph, hidden_channels)
    strategy = Strategy([*TIE().terms, Alarm()], "TIE")
    trainer = IncrementalTrainer(model, graph, strategy, device="cpu", callbacks=[])
    step = graph.timeline.base_step
    learner = trainer.learner(step)
    try:
        learner._train()
    except Reached:
        reached = time.perf_counter()
    yield {"torch": torch_is_there - begin, "imports": imported - begin, "setup": reached - imported}


def epochs(
    entities: int,
    changed: int,
    replay_size: int,
    negatives: int,
    replay_negatives: int,
    hidden_channels: int,
    shared: bool,
    pool: bool,
) -> Answers:
    """Seconds of one epoch of TIE after another on a synthetic graph, and the memory they take beside the tables."""
    from benchmarks import memory
    from tkg_incremental import IncrementalTrainer
    from tkg_incremental.datasets import SyntheticTKG
    from tkg_incremental.models import DE
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.strategies import Added, Deleted, Drift, Forget, Link, Replay, Replayed, Strategy

    # Few steps: it is entities we want, and each fact has a row at every step it holds.
    dataset = SyntheticTKG(
        num_entities=entities,
        num_steps=5,
        facts_per_step=entities,
        added_per_step=changed,
        deleted_per_step=changed,
        val=0.01,
        test=0.01,
    )
    terms = [
        Link(Added(), negatives, shared),
        Drift(),
        Forget(Deleted(limit=changed)),
        Replay(Replayed(size=replay_size), replay_negatives, shared),
    ]
    strategy = Strategy(terms, "TIE")
    model = DE.from_dataset(dataset, hidden_channels)
    whom = {} if pool else {"negative_pool": None}
    trainer = IncrementalTrainer(model, dataset, strategy, device="cpu", callbacks=[], **whom)
    step = dataset.timeline.base_step

    def learner() -> Any:
        return trainer.learner(step)

    # What the facts are looked up in is made once for all steps and grows with the facts: it stands before we count.
    learner()._train()
    memory.trim()
    before = memory.resident()
    memory.reset_peak()
    keep_freed_memory()
    learning = learner()
    tables = sum(table.nbytes for table in model.parameters()) / memory.MB
    while True:
        begin = time.perf_counter()
        learning._train()
        seconds = time.perf_counter() - begin
        yield {"seconds": seconds, "extra": memory.peak() - before, "tables": tables, "rows": learning.rows}


def ranking(queries: int, candidates: int, hidden_channels: int) -> Answers:
    """Seconds of ranking against a large table, of its bare product, and the memory that ranking takes beside it."""
    import torch

    from benchmarks import memory
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.ops.ranking import count_ranks

    generator = torch.Generator().manual_seed(0)
    query = torch.randn(queries, hidden_channels, generator=generator)
    table = torch.randn(candidates, hidden_channels, generator=generator)
    answer = torch.randint(candidates, (queries,), generator=generator)
    nothing = torch.empty(0, dtype=torch.long)

    def rank(count: int = queries) -> None:
        count_ranks(query[:count], table, torch.arange(count), answer[:count], (nothing, nothing), "dot")

    rank(1)  # loads what is loaded on first use
    memory.trim()
    before = memory.resident()
    memory.reset_peak()
    keep_freed_memory()
    rank()
    extra = memory.peak() - before
    at_a_time = 1024  # the whole product would not fit: it goes into one buffer that stays in the cache
    buffer = torch.empty(queries * at_a_time)

    def product() -> None:
        for part in table.split(at_a_time):
            torch.mm(query, part.t(), out=buffer[: queries * len(part)].view(queries, len(part)))

    product()
    while True:
        begin = time.perf_counter()
        rank()
        ranked = time.perf_counter()
        product()
        yield {"seconds": ranked - begin, "bare": time.perf_counter() - ranked, "extra": extra}


PROBES: dict[str, Callable[..., Answers]] = {"first_batch": first_batch, "epochs": epochs, "ranking": ranking}


# The process -------------------------------------------------------------------------------------------


class Probe:
    """A fresh process that answers.

    Args:
        name: One of ``PROBES``.
        threads: Threads of torch in it.
        **options: Arguments of the probe.
    """

    def __init__(self, name: str, threads: int, **options: Any) -> None:
        command = [sys.executable, "-m", "benchmarks.probe", name, json.dumps(options)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )
        self._asked = False

    def ask(self) -> dict[str, float]:
        """The next answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._asked:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        self._asked = True
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the probe {self._process.args!r} ended with code {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> Probe:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its input, at which it ends


def main() -> None:
    answers = PROBES[sys.argv[1]](**json.loads(sys.argv[2]))
    for answer in answers:
        print(json.dumps(answer), flush=True)
        if not sys.stdin.readline():
            return


if __name__ == "__main__":
    main()
