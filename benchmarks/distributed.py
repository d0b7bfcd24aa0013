"""Several processes: speed, bytes sent, and memory of each."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from benchmarks.group import run_group
from benchmarks.harness import Benchmark, Measurement, Timing, in_seconds, ratio_at_most
from benchmarks.lab import Lab
from benchmarks.memory import MB

_SHARDS = 4


@cache
def _work(lab: Lab, processes: int, threads: int) -> dict[str, Any]:
    """All timings of one launch."""
    sizes = lab.sizes
    named = ("hidden_channels", "negatives", "replay_negatives", "replay_size")
    options = {"sizes": {name: getattr(sizes, name) for name in named}, "rounds": 1 if lab.quick else 5, **lab.recipe}
    return run_group("work", processes, threads, **options)


def scaling(lab: Lab, what: str, work: str, threads: int = 1) -> Measurement:
    """Two processes of one thread beside one process of one or more threads."""
    assert len(lab.dataset) > 0  # creates the cache that the processes open
    threads = 1 if lab.quick else threads  # saves a launch
    one, two = _work(lab, 1, threads), _work(lab, 2, 1)
    found = in_seconds(
        f"{work}, t = {lab.time} of {lab.recipe['dataset']}: two processes of one thread",
        Timing(two[what], one[what]),
        f"one process of {threads} thread{'s' * (threads > 1)}",
    )
    assert found.ratio is not None
    return Measurement(
        found.work, found.value, "s", found.reference, found.reference_value, 1 / found.ratio, "speed", found.rounds
    )


def volume(lab: Lab) -> Measurement:
    found = _work(lab, 2, 1)
    work = "gradients that one of two processes sends per update of TIE, DE: touched rows (rowwise)"
    sparse, dense = found["rowwise sent"] / MB, found["gradients"] / MB
    return Measurement(work, sparse, "MB", "whole tables (published)", dense, sparse / dense)


@cache
def _sharded(lab: Lab, processes: int) -> dict[str, Any]:
    sizes = lab.sizes
    options = {"entities": 2 * sizes.candidates, "hidden_channels": sizes.hidden_channels}
    return run_group("sharded", processes, 1, **options, negatives=sizes.negatives, tests=sizes.queries // 20)


def sharded_memory(lab: Lab, what: str, work: str) -> Measurement:
    whole, spread = _sharded(lab, 1), _sharded(lab, _SHARDS)
    tables = f"entity tables of {2 * lab.sizes.candidates:,} × {lab.sizes.hidden_channels} (DE)"
    beyond = f"beyond {spread['baseline']:.0f} MB of imports"
    text = f"peak memory of a process, {work}, {tables} divided among {_SHARDS}, {beyond}"
    return Measurement(text, spread[what], "MB", "one process", whole[what], spread[what] / whole[what])


def sharded_volume(lab: Lab) -> Measurement:
    found = _sharded(lab, _SHARDS)
    sent = found["sent"] / (3 * found["updates"]) / MB
    dense = 2 * lab.sizes.candidates * lab.sizes.hidden_channels * 2 * 4 / MB
    work = f"rows and gradients that a process sends per update, tables divided among {_SHARDS}"
    return Measurement(work, sent, "MB", "a gradient of whole tables", dense, sent / dense)


def sharded_rate(lab: Lab, items: str, seconds: str, unit: str, work: str) -> Measurement:
    whole, spread = (found[items] / found[seconds] for found in (_sharded(lab, 1), _sharded(lab, _SHARDS)))
    text = f"{work}, tables of {2 * lab.sizes.candidates:,} entities divided among {_SHARDS} processes of one thread"
    return Measurement(text, spread, unit, "one process of one thread", whole, spread / whole, "speed")


BENCHMARKS = [
    Benchmark("distributed/tie-rowwise", partial(scaling, what="rowwise", work="one TIE epoch, DE, rowwise")),
    Benchmark("distributed/tie-published", partial(scaling, what="published", work="one TIE epoch, DE, published")),
    Benchmark(
        "distributed/one-vs-all", partial(scaling, what="one-vs-all", work="one epoch of all facts, 1-vs-all, DE")
    ),
    Benchmark("distributed/evaluation", partial(scaling, what="evaluation", work="the test pass, DE")),
    Benchmark("distributed/threads", partial(scaling, what="rowwise", work="one TIE epoch, DE, rowwise", threads=2)),
    Benchmark("distributed/volume", volume),
    Benchmark(
        "distributed/sharded-epoch",
        partial(sharded_rate, items="quads", seconds="seconds", unit="quads/s", work="one TIE epoch, shared negatives"),
    ),
    Benchmark(
        "distributed/sharded-ranking",
        partial(sharded_rate, items="ranks", seconds="ranking", unit="queries/s", work="filtered ranks among all"),
    ),
    Benchmark("distributed/sharded-volume", sharded_volume),
    Benchmark(
        "distributed/sharded-training",
        partial(sharded_memory, what="training", work="training"),
        (ratio_at_most(1 / 3),),
    ),
    Benchmark(
        "distributed/sharded-memory",
        partial(sharded_memory, what="peak", work="training and ranking"),
        (ratio_at_most(1 / 3),),
    ),
]
