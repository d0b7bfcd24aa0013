"""Time until training begins."""

from __future__ import annotations

from functools import cache

from benchmarks.harness import Benchmark, Measurement, Timing, at_most, in_seconds
from benchmarks.lab import Lab
from benchmarks.probe import Probe


@cache
def _starts(lab: Lab) -> list[dict[str, float]]:
    """Measurements of fresh processes, one after the other."""
    assert len(lab.dataset) > 0  # creates the cache that the processes open
    answers = []
    for _ in range(lab.processes):
        with Probe("first_batch", lab.threads, hidden_channels=lab.sizes.hidden_channels, **lab.recipe) as probe:
            answers.append(probe.ask())
    return answers


def set_up(lab: Lab) -> Measurement:
    seconds = [answer["setup"] for answer in _starts(lab)]
    work = f"set-up in a fresh process, to the losses of TIE's first batch: {lab.recipe['dataset']} from its cache, DE"
    return in_seconds(f"{work}, trainer (without imports)", Timing(seconds))


def imports(lab: Lab) -> Measurement:
    answers = _starts(lab)
    timing = Timing([answer["imports"] for answer in answers], [answer["torch"] for answer in answers])
    return in_seconds("imports in a fresh process", timing, "`import torch` alone")


BENCHMARKS = [
    Benchmark("setup/first-batch", set_up, (at_most(1.0),), published="124 s"),
    Benchmark("setup/imports", imports),
]
