"""Large graphs: learning costs what changed, and ranking takes bounded memory."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache, partial
from statistics import median

from benchmarks.harness import Benchmark, Measurement, Timing, at_most, in_rate, in_seconds, ratio_at_most
from benchmarks.lab import Lab
from benchmarks.memory import MB
from benchmarks.probe import Probe

_ROUNDS = 7


@cache
def _epochs(lab: Lab, shared: bool) -> list[list[dict[str, float]]]:
    """Answers of a process for each size of graph, all alive at once and asked in turn."""
    sizes = lab.sizes
    options = {
        "changed": sizes.changed,
        "replay_size": sizes.replay_size,
        "negatives": sizes.negatives,
        "replay_negatives": sizes.replay_negatives,
        "hidden_channels": sizes.hidden_channels,
        "shared": shared,
    }
    with ExitStack() as stack:
        probes = [stack.enter_context(Probe("epochs", lab.threads, entities=n, **options)) for n in sizes.graphs]
        # The first is not timed: some still make their graph then.
        rounds = [[probe.ask() for probe in probes] for _ in range(1 + (1 if lab.quick else _ROUNDS))]
    return [list(answers) for answers in zip(*rounds, strict=True)]


def epoch(lab: Lab, graph: int, shared: bool) -> Measurement:
    smallest, this = _epochs(lab, shared)[0], _epochs(lab, shared)[graph]
    timing = Timing([answer["seconds"] for answer in this[1:]], [answer["seconds"] for answer in smallest[1:]])
    sizes = lab.sizes
    work = (
        f"one TIE epoch ({sizes.changed} added + {sizes.changed} deleted + {sizes.replay_size:,} replayed facts) on "
        f"{sizes.graphs[graph]:,} entities, DE, rowwise optimiser, "
        f"{'negatives shared by the rows of a time' if shared else 'negatives for each row on its own'}"
    )
    return in_seconds(work, timing, f"the same on {sizes.graphs[0]:,} entities")


def epoch_memory(lab: Lab, shared: bool, epochs: int = 1) -> Measurement:
    smallest, largest = (_epochs(lab, shared)[graph][:epochs][-1] for graph in (0, -1))
    tables = largest["tables"] - smallest["tables"]
    growth = tables + largest["extra"] - smallest["extra"]
    low, high = lab.sizes.graphs[0], lab.sizes.graphs[-1]
    own = "shared negatives" if shared else "each row its own negatives"
    span = "one epoch" if epochs == 1 else f"{epochs} epochs"
    work = f"growth of the peak memory of model and learning, {span}, from {low:,} to {high:,} entities, {own}"
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
    Benchmark("scale/epoch-100k", partial(epoch, graph=1, shared=True)),
    Benchmark("scale/epoch-1m", partial(epoch, graph=2, shared=True), (ratio_at_most(1.5),)),
    # 10% for what an allocator keeps for itself.
    Benchmark("scale/epoch-memory", partial(epoch_memory, shared=True), (ratio_at_most(1.1),)),
    # Every epoch draws other negatives, and what is kept of touched rows is kept until the step ends.
    Benchmark("scale/epochs-memory", partial(epoch_memory, shared=True, epochs=1 + _ROUNDS)),
    # Negatives of its own for each row touch most entities of any graph, so this cost follows the sample.
    Benchmark("scale/own-epoch-1m", partial(epoch, graph=2, shared=False), (ratio_at_most(1.5),)),
    Benchmark("scale/own-epoch-memory", partial(epoch_memory, shared=False), (ratio_at_most(1.1),)),
    Benchmark("scale/ranking", ranking, (ratio_at_most(2.0),)),
    Benchmark("scale/ranking-memory", ranking_memory, (at_most(256),)),
]
