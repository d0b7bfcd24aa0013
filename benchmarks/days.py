"""A graph at day granularity over ten years: the cost follows the number of facts, not of (fact, day) pairs."""

from __future__ import annotations

from functools import cache, partial

from benchmarks.harness import Benchmark, Measurement, Timing, at_most, in_seconds
from benchmarks.lab import Lab
from benchmarks.probe import Probe


@cache
def _days(lab: Lab) -> dict[str, float]:
    sizes = lab.sizes
    options = {"facts": sizes.day_facts, "steps": sizes.day_steps, "entities": sizes.day_entities}
    with Probe("days", lab.threads, hidden_channels=sizes.hidden_channels, **options) as probe:
        return probe.ask()


def seconds(lab: Lab, what: str, work: str) -> Measurement:
    found = _days(lab)
    graph = f"{found['facts']:,} facts on {found['steps']:,} days, {found['entities']:,} entities"
    return in_seconds(
        f"{work.format(**{k.replace(' ', '_'): v for k, v in found.items()})}; {graph}", Timing([found[what]])
    )


def peak_memory(lab: Lab) -> Measurement:
    found = _days(lab)
    work = (
        f"peak memory of loading, a base epoch, a TIE step and an evaluation, without imports; {found['facts']:,} facts"
    )
    return Measurement(f"{work} on {found['steps']:,} days, DE", found["evaluation MB"], "MB")


BENCHMARKS = [
    Benchmark("days/load", partial(seconds, what="load", work="loading the graph from its cache"), (at_most(10.0),)),
    Benchmark(
        "days/base-epoch",
        partial(seconds, what="base epoch", work="one base epoch with default settings ({base_quads:,} quads), DE"),
        (at_most(20.0),),
    ),
    Benchmark(
        "days/base-validation", partial(seconds, what="base validation", work="validation of the base model, DE")
    ),
    Benchmark(
        "days/tie-step",
        partial(seconds, what="step epoch", work="one TIE epoch of a day ({step_quads:,} quads), DE"),
        (at_most(2.0),),
    ),
    Benchmark("days/step-setup", partial(seconds, what="step setup", work="set-up of a TIE step"), (at_most(1.0),)),
    Benchmark(
        "days/evaluation", partial(seconds, what="evaluation", work="evaluation after a step, DE"), (at_most(10.0),)
    ),
    Benchmark("days/memory", peak_memory, (at_most(1024),)),
]
