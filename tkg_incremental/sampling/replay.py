"""Which facts of the past are learnt again."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data.snapshot import Snapshot
from tkg_incremental.ops.keys import pack

ReplaySampling = Literal["uniform", "frequency", "inverse", "turns"]
SAMPLINGS: tuple[ReplaySampling, ...] = ("uniform", "frequency", "inverse", "turns")

#: Weight of each pattern (head, rel, tail; a dot stands for any), from the paper.
PATTERN_WEIGHTS = {"sro": 2.0, "s.o": 1.5, "sr.": 1.3, ".ro": 1.3, "s..": 1.0, "..o": 1.0}


def sample_replay(
    snapshot: Snapshot,
    window: int,
    size: int,
    sampling: ReplaySampling = "uniform",
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Draws the replayed facts :math:`P^t` from the buffer :math:`B^t`.

    Uniform sampling is without replacement, by frequency it is with, as in the released code. Not of the paper is
    ``"turns"``: facts as they began and as they were last seen, without what lies between, uniformly and without
    replacement. So a fact counts no more for having held longer, and a buffer of few rows may reach far back.

    Args:
        snapshot: The current step.
        window: How many steps back the buffer reaches.
        size: How many facts to draw; a smaller buffer is taken whole unless facts are drawn by their frequency.
        sampling: ``"uniform"``, ``"frequency"``, ``"inverse"`` or ``"turns"``.
        generator: Source of randomness.
    """
    if sampling not in SAMPLINGS:
        raise ValueError(f"sampling must be one of {SAMPLINGS} (got {sampling!r})")
    buffer = snapshot.turns(window) if sampling == "turns" else snapshot.replay(window)
    if len(buffer) == 0 or size == 0:
        return buffer[:0]
    if sampling in ("uniform", "turns"):
        return buffer[some_of(len(buffer), size, generator, buffer.device)]
    weights = replay_weights(buffer, snapshot.current, snapshot.time, window, sampling)
    # By the inverse of the distribution function: unlike torch.multinomial it takes buffers of any size.
    upper = torch.cumsum(weights, 0)
    draws = torch.rand(size, generator=generator, device=buffer.device, dtype=upper.dtype) * upper[-1]
    return buffer[torch.searchsorted(upper, draws, right=True).clamp_(max=len(buffer) - 1)]


def some_of(
    count: int, size: int, generator: torch.Generator | None = None, device: torch.device | None = None
) -> Tensor:
    """``size`` of the numbers below ``count``, or all of them, without replacement and in no order."""
    if size * 4 >= count:
        return torch.randperm(count, generator=generator, device=device)[:size]
    # Few of many: what is drawn costs what is taken, not what there is. Every set of distinct draws is as likely as any
    # other of its size, and so are its parts.
    numbers = torch.empty(0, dtype=torch.long, device=device)
    while len(numbers) < size:
        draws = torch.randint(count, (size * 3 // 2,), generator=generator, device=device)
        numbers = torch.unique(torch.cat([numbers, draws]))
    return numbers[torch.randperm(len(numbers), generator=generator, device=device)[:size]]


def replay_weights(
    buffer: Tensor,
    current: Tensor,
    time: int,
    window: int,
    sampling: ReplaySampling,
    decay: float = 10.0,
    discount: float = 0.5,
) -> Tensor:
    r"""Unnormalised sampling rates :math:`\psi` of Algorithm 1, ``[len(buffer)]``.

    .. math::
        fp(s, r, o) = 1 + \sum_p \lambda_p \left[ \log(h_p + 1) + \gamma\, \tau \log(c_p + 1) \right], \qquad
        tp(t') = \exp\left(\tfrac{t' - t}{\sigma}\right)

    with :math:`h_p` and :math:`c_p` the facts of the buffer and of the current step that match pattern :math:`p`;
    :math:`\psi = tp \cdot fp`, or :math:`tp / fp` for the inverse. The 1 is not in the paper: the released code adds
    it, and it keeps the inverse finite.

    Args:
        buffer: ``[n, 4]`` rows of the window.
        current: ``[m, 4]`` rows of the current step.
        time: The current step.
        window: :math:`\tau`.
        sampling: ``"frequency"`` or ``"inverse"``.
        decay: :math:`\sigma`.
        discount: :math:`\gamma`.
    """
    if sampling not in ("frequency", "inverse"):
        raise ValueError(f"sampling must be 'frequency' or 'inverse' (got {sampling!r})")
    frequency = torch.ones(len(buffer), dtype=torch.double, device=buffer.device)
    both = torch.cat([buffer, current])
    past = torch.arange(len(both), device=both.device) < len(buffer)
    sizes = [int(both[:, column].max()) + 1 for column in range(3)]
    for pattern, weight in PATTERN_WEIGHTS.items():
        kept = [column for column, letter in enumerate(pattern) if letter != "."]
        key = pack([both[:, c] for c in kept], [sizes[c] for c in kept])
        _, group = torch.unique(key, return_inverse=True)
        groups = int(group.max()) + 1
        historical = torch.bincount(group[past], minlength=groups)[group[past]]
        present = torch.bincount(group[~past], minlength=groups)[group[past]]
        frequency += weight * (torch.log(historical + 1.0) + discount * window * torch.log(present + 1.0))
    recency = torch.exp((buffer[:, 3] - time) / decay)
    return recency * frequency if sampling == "frequency" else recency / frequency
