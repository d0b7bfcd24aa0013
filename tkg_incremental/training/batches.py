"""How rows are spread over the batches of an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

# Rows of one time meet the same candidates, which are encoded once for all of them, so they had better come together.
# Pieces of this size still mix a few times in every batch.
_PIECE = 512


def spread(
    views: Sequence[Tensor | None], batch_size: int, generator: torch.Generator
) -> Iterator[list[Tensor | None]]:
    """Batches of at most ``batch_size`` rows over all views together, each view spread evenly.

    Args:
        views: Rows ``[n, 4]`` of each term, or :obj:`None` for a term without rows.
        batch_size: Rows in a batch, over all views.
        generator: Source of randomness.
    """
    total = sum(len(rows) for rows in views if rows is not None)
    batches = math.ceil(total / batch_size)
    parts: list[Sequence[Tensor | None]] = []
    # Like dealing cards: a view begins with the batch after the one that the view before ended with.
    dealt = 0
    for rows in views:
        if rows is None:
            parts.append([None] * batches)
        else:
            sizes = [len(range((batch - dealt) % batches, len(rows), batches)) for batch in range(batches)]
            parts.append(_shuffle(rows, generator).split(sizes))
            dealt += len(rows)
    yield from (list(batch) for batch in zip(*parts, strict=True))


def _shuffle(rows: Tensor, generator: torch.Generator) -> Tensor:
    order = torch.randperm(len(rows), generator=generator, device=rows.device)
    pieces = order[torch.argsort(rows[order, 3], stable=True)].split(_PIECE)
    shuffled = torch.randperm(len(pieces), generator=generator, device=rows.device).tolist()
    return rows[torch.cat([pieces[i] for i in shuffled])]
