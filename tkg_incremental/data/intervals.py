"""Intervals in steps: from instants to steps, merging, and rows of facts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.ops.keys import lexsort, pack


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


def merge_intervals(key: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Merges the intervals of the same key that overlap or touch.

    Args:
        key: ``[F]`` what an interval belongs to; sorted by (key, first).
        first: ``[F]`` first steps.
        last: ``[F]`` last steps, at least ``first``.

    Returns:
        A mask ``[F]`` of the entries that begin a merged interval, and the last step of each merged interval.

    >>> merge_intervals(torch.tensor([4, 4, 4]), torch.tensor([0, 2, 6]), torch.tensor([3, 5, 6]))
    (tensor([ True, False, False]), tensor([6]))
    """
    if len(key) == 0:
        return torch.zeros_like(key, dtype=torch.bool), last
    new_key = torch.ones_like(key, dtype=torch.bool)
    new_key[1:] = key[1:] != key[:-1]
    # The running maximum of the last steps within a key: an offset per key separates the keys.
    offset = (torch.cumsum(new_key, 0) - 1) * (int(last.max()) + 1)
    reach = torch.cummax(last + offset, 0).values
    begins = new_key.clone()
    begins[1:] |= (first + offset)[1:] > reach[:-1] + 1
    ends = torch.cat([begins[1:], begins.new_ones(1)])
    return begins, (reach - offset)[ends]


def sort_quads(quads: Tensor) -> Tensor:
    """Sorts quads ``[n, 4]`` by time, head, rel, tail."""
    if len(quads) == 0:
        return quads
    head, rel, tail, time = quads.unbind(1)
    return quads[lexsort(time, pack([head, rel, tail], [int(column.max()) + 1 for column in (head, rel, tail)]))]


def one_step_facts(quads: Tensor) -> Tensor:
    """Each quad as a fact of one step, ``[n, 4] → [n, 5]``."""
    return torch.cat([quads, quads[:, 3:]], dim=1)


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
