"""Large graphs: the cost of learning follows the change, and ranking needs bounded memory."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache, partial
from statistics import median

from benchmarks.harness import Benchmark, Measurement, Timing, at_most, in_rate, in_seconds, ratio_at_most
from benchmarks.lab import Lab
from benchmarks.memory import MB
from benchmarks.probe import Probe

_ROUNDS = 7


# How negatives are drawn.
_OWN = "own negatives for each query"
_SHARED = "negatives shared by the quads of a time"
_NO_POOL = "own negatives for each query, from all entities instead of a pool"


@cache
def _epochs(lab: Lab, kind: str) -> list[list[dict[str, float]]]:
    """Measurements of a process for each size of graph; the processes take turns."""
    sizes = lab.sizes
    options = {
        "changed": sizes.changed,
        "replay_size": sizes.replay_size,
        "negatives": sizes.negatives,
        "replay_negatives": sizes.replay_negatives,
        "hidden_channels": sizes.hidden_channels,
        "shared": kind == _SHARED,
        "pool": kind != _NO_POOL,
    }
    with ExitStack() as stack:
        probes = [stack.enter_context(Probe("epochs", lab.threads, entities=n, **options)) for n in sizes.graphs]
        # The first round is not timed: some processes still make their graph.
        rounds = [[probe.ask() for probe in probes] for _ in range(1 + (1 if lab.quick else _ROUNDS))]
    return [list(answers) for answers in zip(*rounds, strict=True)]


def epoch(lab: Lab, graph: int, kind: str = _OWN) -> Measurement:
    smallest, this = _epochs(lab, kind)[0], _epochs(lab, kind)[graph]
    timing = Timing([answer["seconds"] for answer in this[1:]], [answer["seconds"] for answer in smallest[1:]])
    sizes = lab.sizes
    work = (
        f"one TIE epoch ({sizes.changed} added + {sizes.changed} deleted + {sizes.replay_size:,} replayed facts) on "
        f"{sizes.graphs[graph]:,} entities, DE, rowwise optimizer, {kind}"
    )
    return in_seconds(work, timing, f"the same on {sizes.graphs[0]:,} entities")


def epoch_memory(lab: Lab, kind: str = _OWN, epochs: int = 1, graph: int = 0) -> Measurement:
    smaller, largest = (_epochs(lab, kind)[which][:epochs][-1] for which in (graph, -1))
    tables = largest["tables"] - smaller["tables"]
    growth = tables + largest["extra"] - smaller["extra"]
    low, high = lab.sizes.graphs[graph], lab.sizes.graphs[-1]
    span = "one epoch" if epochs == 1 else f"{epochs} epochs"
    work = f"growth of the peak memory of model and learning, {span}, from {low:,} to {high:,} entities, {kind}"
    return Measurement(work, growth, "MB", "growth of the model's tables", tables, growth / tables)


@cache
def _ranking(lab: Lab) -> list[dict[str, float]]:
    sizes = lab.sizes
    options = {"queries": sizes.queries, "candidates": sizes.candidates, "hidden_channels": sizes.hidden_channels}
    with Probe("ranking", lab.threads, **options) as probe:
        return [probe.ask() for _ in range(1 if lab.quick else 3)]


def ranking(lab: Lab) -> Measurement:
    answers, sizes = _ranking(lab), lab.sizes
    timing = Timing([answer["seconds"] for answer in answers], [answer["bare"] for answer in answers])
    work = f"ranks of {sizes.queries:,} queries among {sizes.candidates:,} candidates"
    return in_rate(work, timing, sizes.queries, "queries/s", "the product, into one small buffer")


def ranking_memory(lab: Lab) -> Measurement:
    answers, sizes = _ranking(lab), lab.sizes
    extra = median(answer["extra"] for answer in answers)
    work = f"peak memory of ranking {sizes.queries:,} queries among {sizes.candidates:,} candidates, beside the table"
    whole = sizes.queries * sizes.candidates * 4 / MB
    return Measurement(work, extra, "MB", "all scores at once", whole, extra / whole)


BENCHMARKS = [
    Benchmark("scale/epoch-100k", partial(epoch, graph=1)),
    Benchmark("scale/epoch-1m", partial(epoch, graph=2), (ratio_at_most(1.5),)),
    # 10% for the overhead of the allocator.
    Benchmark("scale/epoch-memory", epoch_memory, (ratio_at_most(1.1),)),
    # In a small graph the change cannot touch as many rows as it does in a large one.
    Benchmark("scale/epoch-memory-100k", partial(epoch_memory, graph=1), (ratio_at_most(1.1),)),
    # Former values of touched rows are kept until the step ends.
    Benchmark("scale/epochs-memory", partial(epoch_memory, epochs=1 + _ROUNDS)),
    Benchmark("scale/shared-epoch-1m", partial(epoch, graph=2, kind=_SHARED), (ratio_at_most(1.5),)),
    Benchmark("scale/shared-epoch-memory", partial(epoch_memory, kind=_SHARED), (ratio_at_most(1.1),)),
    # For comparison: without a pool.
    Benchmark("scale/no-pool-epoch-1m", partial(epoch, graph=2, kind=_NO_POOL)),
    Benchmark("scale/no-pool-epoch-memory", partial(epoch_memory, kind=_NO_POOL)),
    Benchmark("scale/ranking", ranking, (ratio_at_most(2.0),)),
    Benchmark("scale/ranking-memory", ranking_memory, (at_most(256),)),
]
