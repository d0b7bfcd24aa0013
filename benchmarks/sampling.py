"""Drawing negatives."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.harness import Benchmark, Measurement, in_seconds
from benchmarks.lab import Lab
from tkg_incremental.sampling import NegativeSampler

_BATCH = 2048


def negatives(lab: Lab, replayed: bool) -> Measurement:
    line = lab.dataset.timeline
    count = lab.sizes.replay_negatives if replayed else lab.sizes.negatives
    generator = torch.Generator().manual_seed(0)
    history = line.observed.between(0, lab.time)
    rows = history[torch.randperm(len(history), generator=generator)[:_BATCH]]
    sampler, known = NegativeSampler(line), int(line.num_known[lab.time])
    timing = lab.time_work(
        lambda: sampler(rows, "tail", count, generator),
        lambda: torch.randint(known, (len(rows), count), generator=generator),
    )
    work = f"{count} negatives, never a true answer, for each of {len(rows):,} rows of mixed times"
    return in_seconds(work, timing, "one `torch.randint` of as many")


BENCHMARKS = [
    Benchmark("sampling/negatives", partial(negatives, replayed=False)),
    Benchmark("sampling/replay-negatives", partial(negatives, replayed=True)),
]
