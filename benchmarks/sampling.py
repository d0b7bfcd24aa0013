"""Negative sampling."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.harness import Benchmark, Measurement, in_seconds
from benchmarks.lab import Lab
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.ops.answers import TIME

_BATCH = 2048


def negatives(lab: Lab, replayed: bool) -> Measurement:
    line = lab.dataset.timeline
    count = lab.sizes.replay_negatives if replayed else lab.sizes.negatives
    generator = torch.Generator().manual_seed(0)
    quads = line.observed.between(0, lab.time).sample(_BATCH, generator)
    quads = quads[torch.argsort(quads[:, TIME], stable=True)]
    sampler, known = NegativeSampler(line), int(line.num_known[lab.time])
    timing = lab.time_work(
        lambda: sampler.draw(quads, count, generator),
        lambda: torch.randint(known, (2 * len(quads), count), generator=generator),
    )
    work = f"{count} negatives per query, without true answers, for {len(quads):,} quads of mixed times"
    return in_seconds(work, timing, "one `torch.randint` of the same size")


BENCHMARKS = [
    Benchmark("sampling/negatives", partial(negatives, replayed=False)),
    Benchmark("sampling/replay-negatives", partial(negatives, replayed=True)),
]
