"""From facts with an interval of validity to rows, one for every step the fact holds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data.axis import TimeAxis


def bin_by_count(instants: Sequence[int] | Tensor, threshold: int = 300, unit: str = "year") -> TimeAxis:
    """Merges adjacent instants into steps of comparable size.

    Walks the sorted instants and closes a step once it holds more than ``threshold`` of them; the last
    step ends at the last instant. This is how the published Wikidata12k and YAGO11k steps were made.

    Args:
        instants: Every start and end that occurs, with repetitions.
        threshold: A step is closed as soon as its count exceeds this.
        unit: What an instant counts.

    >>> bin_by_count([1990, 1990, 1991, 1995, 1995, 1999], threshold=1).labels
    ['1990', '1991–1995', '1996–1999']
    """
    values, counts = torch.unique(torch.as_tensor(instants), return_counts=True)
    if values.numel() == 0:
        raise ValueError("instants must not be empty")
    last, total = [], 0
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        total += count
        if total > threshold:
            last.append(value)
            total = 0
    if not last or last[-1] != int(values[-1]):
        last.append(int(values[-1]))
    first = [int(values[0]), *(end + 1 for end in last[:-1])]
    return TimeAxis(tuple(first), tuple(last), unit)


def expand_intervals(triples: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Repeats every fact for each step from ``start`` to ``end``, both included.

    Args:
        triples: ``[n, 3]`` head, rel, tail.
        start: ``[n]`` first step.
        end: ``[n]`` last step; a fact with ``end < start`` gives no row.

    Returns:
        ``[N, 4]`` head, rel, tail, time.
    """
    length = (end - start + 1).clamp(min=0)
    fact = torch.repeat_interleave(torch.arange(len(triples)), length)
    before = torch.cumsum(length, 0) - length
    time = start[fact] + torch.arange(len(fact)) - before[fact]
    return torch.cat([triples[fact], time[:, None]], dim=1)
