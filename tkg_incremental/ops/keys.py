"""Facts as single integers: packing, sorting and set algebra on int64 keys."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_LIMIT = 2**63 - 1


def pack(columns: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Packs columns into one int64 key per row, so that keys sort like the rows do.

    Args:
        columns: Equally shaped integer tensors, the most significant first.
        sizes: How many values each column can take.

    >>> pack([torch.tensor([1, 0]), torch.tensor([2, 4])], [2, 5])
    tensor([7, 4])
    """
    span = 1
    for size in sizes:
        span *= max(size, 1)
    if span > _LIMIT:
        raise OverflowError(
            f"a key of {' × '.join(map(str, sizes))} values does not fit into 63 bits; the graph is too large"
        )
    key = columns[0]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        key = key * size + column
    return key


def lexsort(major: Tensor, minor: Tensor) -> Tensor:
    """The order that sorts by ``major`` and, where that ties, by ``minor``; neither may be negative."""
    if minor.numel() == 0:
        return torch.empty_like(minor)
    span = int(minor.max()) + 1
    # One sort of the two as one number takes half the time of two sorts, where that number fits.
    if (int(major.max()) + 1) * span <= _LIMIT:
        return torch.argsort(major * span + minor, stable=True)
    order = torch.argsort(minor, stable=True)
    return order[torch.argsort(major[order], stable=True)]


def find(sorted_keys: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Where ``keys`` are among ascending ones, and whether they are: place and mask, each like ``keys``. A key that is
    not there has the place of another.

    >>> find(torch.tensor([2, 5]), torch.tensor([5, 3, 2]))
    (tensor([1, 1, 0]), tensor([ True, False,  True]))
    """
    if len(sorted_keys) == 0:
        return torch.zeros_like(keys), torch.zeros_like(keys, dtype=torch.bool)
    place = torch.searchsorted(sorted_keys, keys).clamp_(max=len(sorted_keys) - 1)
    return place, sorted_keys[place] == keys


def segment_arange(counts: Tensor) -> Tensor:
    """``0 … count-1`` for each count, one after the other.

    >>> segment_arange(torch.tensor([2, 0, 3]))
    tensor([0, 1, 0, 1, 2])
    """
    ends = torch.cumsum(counts, 0)
    total = int(ends[-1]) if counts.numel() else 0
    start = torch.repeat_interleave(ends - counts, counts, output_size=total)
    return torch.arange(total, device=counts.device) - start


def expand_spans(start: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The places ``start … start+count-1`` of spans end to end: (which span, place).

    >>> expand_spans(torch.tensor([7, 4, 0]), torch.tensor([2, 0, 3]))
    (tensor([0, 0, 2, 2, 2]), tensor([7, 8, 0, 1, 2]))
    """
    inside = segment_arange(counts)
    span = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts, output_size=len(inside))
    return span, start[span] + inside


def find_all(sorted_keys: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """All places of ``keys`` among ascending ones that may repeat: (which key, place), by key.

    >>> find_all(torch.tensor([2, 5, 5]), torch.tensor([5, 3, 2]))
    (tensor([0, 0, 2]), tensor([1, 2, 0]))
    """
    low, high = (torch.searchsorted(sorted_keys, keys, right=right) for right in (False, True))
    return expand_spans(low, high - low)
