"""Averaging gradients over processes: whole tables, or touched rows only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.ops.rows import touched_rows

if TYPE_CHECKING:
    from tkg_incremental.distributed.communicator import DistributedCommunicator


@torch.no_grad()
def average_tables(tables: Sequence[Tensor], communicator: DistributedCommunicator) -> None:
    """Averages dense gradients in place, all tables in one message.

    Args:
        tables: The tables.
        communicator: The processes.
    """
    gradients = [torch.zeros_like(t) if t.grad is None else t.grad for t in tables]
    flat = torch.cat([gradient.flatten() for gradient in gradients]).div_(communicator.size)
    dist.all_reduce(flat, group=communicator.group)
    communicator.sent += flat.nbytes
    for table, gradient in zip(tables, flat.split([g.numel() for g in gradients]), strict=True):
        table.grad = gradient.view_as(table)


@torch.no_grad()
def average_rows(tables: Sequence[Tensor], communicator: DistributedCommunicator) -> None:
    """Averages gradients in place. Only touched rows are exchanged, in two messages for all tables.

    Args:
        tables: The tables.
        communicator: The processes.
    """
    # Summed by row first: a row that many quads of a batch share is sent once.
    touched = [None if table.grad is None else touched_rows(table.grad) for table in tables]
    own = torch.tensor([0 if t is None else len(t[0]) for t in touched], device=tables[0].device)
    gathered = [torch.empty_like(own) for _ in range(communicator.size)]
    dist.all_gather(gathered, own, group=communicator.group)
    counts = torch.stack(gathered).tolist()
    # Tables without touched rows on any process are not moved.
    some = [i for i in range(len(tables)) if any(count[i] for count in counts)]
    counts = [[count[i] for i in some] for count in counts]
    _average([tables[i] for i in some], [touched[i] for i in some], counts, communicator)


def _average(
    tables: Sequence[Tensor],
    touched: Sequence[tuple[Tensor, Tensor] | None],
    counts: list[list[int]],
    communicator: DistributedCommunicator,
) -> None:
    if not tables:
        return
    widths = [table.size(1) for table in tables]
    nothing = torch.empty(0, dtype=torch.long, device=tables[0].device), tables[0].new_empty(0)
    index = torch.cat([(rows or nothing)[0] for rows in touched])
    values = torch.cat([(rows or nothing)[1].flatten() for rows in touched])
    indices = gather_padded(index, [sum(count) for count in counts], communicator.group)
    lengths = [sum(n * width for n, width in zip(count, widths, strict=True)) for count in counts]
    rows = gather_padded(values.div_(communicator.size), lengths, communicator.group)
    index_parts = [part.split(count) for part, count in zip(indices, counts, strict=True)]
    row_parts = [
        part.split([n * width for n, width in zip(count, widths, strict=True)])
        for part, count in zip(rows, counts, strict=True)
    ]
    for place, table in enumerate(tables):
        distinct, rows_of_all = _sum(
            [parts[place] for parts in index_parts], [parts[place].view(-1, widths[place]) for parts in row_parts]
        )
        table.grad = torch.sparse_coo_tensor(
            distinct[None], rows_of_all, table.shape, check_invariants=False, is_coalesced=True
        )
    communicator.sent += index.nbytes + values.nbytes


def _sum(indices: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Rows by index, summed over processes, each of which has an index at most once."""
    distinct, place = torch.unique(torch.cat(list(indices)), return_inverse=True)
    total = rows[0].new_zeros(len(distinct), rows[0].size(1))
    # In the same order on all processes, so that the bits are the same.
    for where, part in zip(place.split([len(index) for index in indices]), rows, strict=True):
        total.index_copy_(0, where, total.index_select(0, where).add_(part))
    return distinct, total


def gather_padded(values: Tensor, lengths: list[int], group: dist.ProcessGroup | None = None) -> list[Tensor]:
    """Tensors ``[n, *]`` of all processes with known lengths; collectives need equal lengths, hence the padding."""
    longest = max(lengths)
    padded = F.pad(values, [0, 0] * (values.dim() - 1) + [0, longest - len(values)])
    gathered = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(gathered, padded.contiguous(), group=group)
    return [part[:length] for part, length in zip(gathered, lengths, strict=True)]
