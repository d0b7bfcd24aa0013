"""Intervals in steps: from instants to steps, merging, and rows of facts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.ops.keys import expand_spans, lexsort, pack


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


def subtract_intervals(facts: Tensor, taken: Tensor) -> Tensor:
    """Removes from facts the steps at which their triple is one of ``taken``.

    Args:
        facts: ``[F, 5]`` head, rel, tail, first, last.
        taken: ``[G, 5]`` facts; those of the same triple must not overlap.

    Returns:
        ``[H, 5]`` what is left of ``facts``, in their order. A fact may be divided into several or disappear.

    >>> subtract_intervals(torch.tensor([[0, 0, 1, 0, 9]]), torch.tensor([[0, 0, 1, 2, 3], [0, 0, 1, 9, 12]]))
    tensor([[0, 0, 1, 0, 1],
            [0, 0, 1, 4, 8]])
    """
    triples = torch.cat([facts[:, :3], taken[:, :3]])
    key, taken_key = torch.unique(triples, dim=0, return_inverse=True)[1].split([len(facts), len(taken)])
    span = int(torch.cat([facts[:, 4], taken[:, 4]]).max()) + 1 if len(triples) else 1
    order = lexsort(taken_key, taken[:, 3])
    first, last = taken[order, 3], taken[order, 4]
    # Overlapping intervals of the same triple: neither over before the fact begins nor begun after it ends.
    low = torch.searchsorted(taken_key[order] * span + last, key * span + facts[:, 3])
    high = torch.searchsorted(taken_key[order] * span + first, key * span + facts[:, 4], right=True)
    # n overlapping intervals leave n + 1 gaps, some of them empty.
    fact, before = expand_spans(low - 1, high - low + 1)
    after, gaps = before + 1, facts[fact]
    outer = len(taken) == 0
    inner_first = torch.zeros_like(before) if outer else last[before.clamp(0, len(taken) - 1)] + 1
    inner_last = torch.zeros_like(after) if outer else first[after.clamp(0, len(taken) - 1)] - 1
    gaps[:, 3] = torch.where(before >= low[fact], inner_first, gaps[:, 3])
    gaps[:, 4] = torch.where(after < high[fact], inner_last, gaps[:, 4])
    return gaps[gaps[:, 3] <= gaps[:, 4]]


def sort_quads(quads: Tensor) -> Tensor:
    """Sorts quads ``[n, 4]`` by time, head, rel, tail."""
    if len(quads) == 0:
        return quads
    head, rel, tail, time = quads.unbind(1)
    return quads[lexsort(time, pack([head, rel, tail], [int(column.max()) + 1 for column in (head, rel, tail)]))]


def one_step_facts(quads: Tensor) -> Tensor:
    """Each quad as a fact of one step, ``[n, 4] → [n, 5]``."""
    return torch.cat([quads, quads[:, 3:]], dim=1)
