"""Replay sampling: which facts of the past are learnt again."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data.lazy_quads import LazyQuads
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.ops.answers import FIRST, LAST
from tkg_incremental.ops.keys import pack

ReplaySampling = Literal["uniform", "frequency", "inverse", "boundary", "fact"]
SAMPLINGS: tuple[ReplaySampling, ...] = ("uniform", "frequency", "inverse", "boundary", "fact")

#: Weight of each pattern (head, rel, tail; a dot matches anything), from the paper.
PATTERN_WEIGHTS = {"sro": 2.0, "s.o": 1.5, "sr.": 1.3, ".ro": 1.3, "s..": 1.0, "..o": 1.0}
#: Decay :math:`\sigma` and discount :math:`\gamma` of Algorithm 1.
DECAY, DISCOUNT = 10.0, 0.5


def sample_replay(
    timeline: Timeline,
    time: int,
    window: int,
    size: int,
    sampling: ReplaySampling = "uniform",
    generator: torch.Generator | None = None,
) -> Tensor | LazyQuads:
    r"""Draws the replayed quads :math:`P^t` from the buffer :math:`B^t`, all train quads of the last ``window`` steps.

    ``"uniform"`` draws from all (fact, step) pairs without replacement. ``"frequency"`` and ``"inverse"`` are the
    paper's Algorithm 1, with replacement as in the released code. ``"boundary"`` draws uniformly from the first and the
    last quads of facts, without the steps in between. ``"fact"`` visits every fact equally often, however long it
    holds, at steps that are drawn in each epoch; if there are more facts than ``size``, a sample of them, each at
    one step.

    Args:
        timeline: The graph.
        time: The current step.
        window: Number of steps the buffer reaches back.
        size: Number of quads to draw. A smaller buffer is taken whole, except by frequency and by fact.
        sampling: One of :data:`SAMPLINGS`.
        generator: Source of randomness.
    """
    if sampling not in SAMPLINGS:
        raise ValueError(f"sampling must be one of {', '.join(SAMPLINGS)} (got {sampling!r})")
    facts = timeline.observed
    if sampling == "boundary":
        quads = facts.boundary_facts(time - window, time - 1)
        return quads[torch.randperm(len(quads), generator=generator, device=quads.device)[:size]]
    buffer = facts.between(time - window, time - 1)
    if sampling == "fact":
        by_fact = buffer.visits(max(1, size // max(1, len(buffer.facts))))
        return by_fact if len(buffer.facts) <= size else by_fact.sample(size, generator)
    if sampling == "uniform":
        return buffer.sample(size, generator)
    if len(buffer) == 0 or size == 0:
        return facts.at(-1)
    return _sample_by_frequency(buffer.facts, facts.at(time), time, window, size, sampling, generator)


def replay_frequencies(facts: Tensor, current: Tensor, window: int) -> Tensor:
    r"""The frequency factor of each fact of the buffer, ``[F, 5] → [F]``:

    .. math::
        fp(s, r, o) = 1 + \sum_p \lambda_p \left[ \log(h_p + 1) + \gamma\, \tau \log(c_p + 1) \right]

    with :math:`h_p` and :math:`c_p` the number of quads of the buffer and of the current step that match pattern
    :math:`p`. The 1 is not in the paper: the released code adds it, and it keeps the inverse finite.

    Args:
        facts: ``[F, 5]`` the buffer, its intervals cut to the window.
        current: ``[m, 4]`` quads of the current step.
        window: :math:`\tau`.
    """
    frequency = torch.ones(len(facts), dtype=torch.double, device=facts.device)
    duration = facts[:, LAST] - facts[:, FIRST] + 1
    both = torch.cat([facts[:, :3], current[:, :3]])
    sizes = [int(both[:, column].max()) + 1 for column in range(3)]
    for pattern, weight in PATTERN_WEIGHTS.items():
        kept = [column for column, letter in enumerate(pattern) if letter != "."]
        key = pack([both[:, c] for c in kept], [sizes[c] for c in kept])
        distinct, group = torch.unique(key, return_inverse=True)
        mine, others = group.split([len(facts), len(current)])
        past = torch.zeros_like(distinct).index_add_(0, mine, duration)[mine]
        present = torch.bincount(others, minlength=len(distinct))[mine]
        frequency += weight * (torch.log(past + 1.0) + DISCOUNT * window * torch.log(present + 1.0))
    return frequency


def _sample_by_frequency(
    facts: Tensor,
    current: Tensor,
    time: int,
    window: int,
    size: int,
    sampling: ReplaySampling,
    generator: torch.Generator | None,
) -> Tensor:
    # A quad of fact f at step t' has the rate f^{±1} · exp((t' − t) / σ). So a fact is drawn by the geometric sum over
    # its interval, then a step inside the interval by inverting that sum.
    frequency = replay_frequencies(facts, current, window)
    begin, end = (torch.exp((facts[:, c] + shift - time) / DECAY) for c, shift in ((FIRST, 0), (LAST, 1)))
    weights = (end - begin) * (frequency if sampling == "frequency" else 1 / frequency)
    upper = torch.cumsum(weights, 0)
    draws = torch.rand(2, size, generator=generator, device=facts.device, dtype=torch.double)
    fact = torch.searchsorted(upper, draws[0] * upper[-1], right=True).clamp_(max=len(facts) - 1)
    level = begin[fact] + draws[1] * (end[fact] - begin[fact])
    step = (torch.log(level) * DECAY + time + math.ulp(time + 1)).floor().long()
    step = step.clamp(min=facts[fact, FIRST], max=facts[fact, LAST])
    return torch.cat([facts[fact, :3], step[:, None]], dim=1)
