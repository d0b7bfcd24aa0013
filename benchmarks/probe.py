"""Measures in a fresh process: set-up times, imports, and memory.

A probe is a generator of measurements. Its process waits for a line of input before each one but the first, so that
several probes can take turns.
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


def clock() -> float:
    """As :func:`benchmarks.harness.clock`, without its imports."""
    return time.process_time() if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter()


# The probes. Imports are part of what they measure, so that they import inside. ---------------------


def first_batch(dataset: str, root: str, options: dict[str, Any], hidden_channels: int) -> Answers:
    """Seconds of the imports, and then to the losses of TIE's first batch, with the dataset in its cache."""
    begin = clock()
    import torch

    torch_imported = clock()
    from tkg_incremental import IncrementalTrainer, datasets
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.registry import make_model
    from tkg_incremental.strategies import TIE, Strategy, Term

    class Reached(Exception):
        pass

    class Alarm(Term):  # the last term of the loss: the others have been computed for the first batch
        def losses(self, encoded: Any, context: Any) -> dict[str, torch.Tensor]:
            raise Reached

    kind = getattr(datasets, dataset)  # imports torch_geometric
    imported = clock()
    keep_freed_memory()
    graph = kind(root, **options)
    model = make_model("DE", graph, hidden_channels)
    strategy = Strategy([*TIE().terms, Alarm()], "TIE")
    trainer = IncrementalTrainer(model, graph, strategy, device="cpu", callbacks=[])
    step = graph.timeline.base_step
    learner = trainer.learner(step)
    try:
        learner._train()
    except Reached:
        reached = clock()
    yield {"torch": torch_imported - begin, "imports": imported - begin, "setup": reached - imported}


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
    """Seconds of consecutive epochs of TIE on a synthetic graph, and the memory they need beside the tables."""
    from benchmarks import memory
    from tkg_incremental import IncrementalTrainer
    from tkg_incremental.datasets import SyntheticTKG
    from tkg_incremental.models import DE
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.strategies import (
        Added,
        CrossEntropy,
        Deleted,
        DeletedFacts,
        Replay,
        Replayed,
        Strategy,
        TemporalRegularization,
    )
    from tkg_incremental.training import TrainerSettings

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
        CrossEntropy(Added(), negatives, shared),
        TemporalRegularization(),
        DeletedFacts(Deleted(limit=changed)),
        Replay(Replayed(size=replay_size), replay_negatives, shared),
    ]
    strategy = Strategy(terms, "TIE")
    model = DE.from_dataset(dataset, hidden_channels)
    settings = TrainerSettings() if pool else TrainerSettings(negative_pool=None)
    trainer = IncrementalTrainer(model, dataset, strategy, device="cpu", settings=settings, callbacks=[])
    step = dataset.timeline.base_step

    def learner() -> Any:
        return trainer.learner(step)

    # The indices of the facts are made once for all steps and grow with the facts: they are not counted.
    learner()._train()
    memory.trim()
    before = memory.resident()
    memory.reset_peak()
    keep_freed_memory()
    learning = learner()
    tables = sum(table.nbytes for table in model.parameters()) / memory.MB
    while True:
        begin = clock()
        learning._train()
        seconds = clock() - begin
        yield {"seconds": seconds, "extra": memory.peak() - before, "tables": tables}


def ranking(queries: int, candidates: int, hidden_channels: int) -> Answers:
    """Seconds of ranking against a large table and of the bare product, and the memory that ranking needs beside it."""
    import torch

    from benchmarks import memory
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.ops.ranking import RankedAnswers, count_ranks

    generator = torch.Generator().manual_seed(0)
    query = torch.randn(queries, hidden_channels, generator=generator)
    table = torch.randn(candidates, hidden_channels, generator=generator)
    answer = torch.randint(candidates, (queries,), generator=generator)
    nothing = torch.empty(0, dtype=torch.long)

    def rank(count: int = queries) -> None:
        count_ranks(RankedAnswers(query[:count], torch.arange(count), answer[:count], (nothing, nothing)), table, "dot")

    rank(1)  # compiles and loads what is needed on first use
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
        begin = clock()
        rank()
        ranked = clock()
        product()
        yield {"seconds": ranked - begin, "bare": clock() - ranked, "extra": extra}


def days(facts: int, steps: int, entities: int, hidden_channels: int) -> Answers:
    """Seconds and peak memory of a graph at day granularity: loading it, the base model, a TIE step and evaluations."""
    import tempfile

    from benchmarks import memory
    from tkg_incremental import IncrementalTrainer
    from tkg_incremental.datasets import SyntheticTKG
    from tkg_incremental.models import DE
    from tkg_incremental.ops.memory import keep_freed_memory
    from tkg_incremental.strategies import TIE

    found: dict[str, float] = {}

    def measure(name: str, work: Callable[[], Any]) -> Any:
        begin = clock()
        result = work()
        found[name] = clock() - begin
        found[f"{name} MB"] = memory.peak() - before
        return result

    memory.trim()
    before = memory.resident()
    with tempfile.TemporaryDirectory() as root:
        # A tenth of the facts hold at a time; the others begin evenly over the steps.
        current = facts // 10
        options = {"facts_per_step": current, "added_per_step": (facts - current) // (steps - 1)}
        sizes = {"num_entities": entities, "num_relations": 20, "num_steps": steps}
        measure("build", lambda: SyntheticTKG(root, **sizes, **options))
        memory.trim()
        memory.reset_peak()
        dataset = measure("load", lambda: SyntheticTKG(root, **sizes, **options))
    keep_freed_memory()
    timeline = dataset.timeline
    step = timeline.base_step
    trainer = IncrementalTrainer(DE.from_dataset(dataset, hidden_channels), dataset, TIE(), device="cpu", callbacks=[])
    learner = measure("base setup", trainer.base_learner)
    measure("base epoch", learner._train)
    measure("base validation", learner.validate)
    found["base quads"] = learner.loader.num_quads
    learner = measure("step setup", lambda: trainer.learner(step))
    measure("first step epoch", learner._train)
    measure("step epoch", learner._train)
    measure("step validation", learner.validate)
    found["step quads"] = learner.loader.num_quads
    measure("evaluation", lambda: trainer.evaluator.evaluate(trainer.model, step))
    found |= {"facts": len(timeline.train), "steps": timeline.num_steps, "entities": timeline.num_entities}
    yield found


PROBES: dict[str, Callable[..., Answers]] = {
    "first_batch": first_batch,
    "epochs": epochs,
    "ranking": ranking,
    "days": days,
}


# The process -------------------------------------------------------------------------------------------


class Probe:
    """A fresh process that measures.

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
        """The next measurement."""
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
        self._process.communicate()  # closes its input, so that it ends


def main() -> None:
    answers = PROBES[sys.argv[1]](**json.loads(sys.argv[2]))
    for answer in answers:
        print(json.dumps(answer), flush=True)
        if not sys.stdin.readline():
            return


if __name__ == "__main__":
    main()
