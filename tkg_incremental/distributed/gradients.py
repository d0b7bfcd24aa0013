"""Averaging gradients over processes: whole tables, or the rows that somebody touched."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tkg_incremental.distributed.world import Processes, World, gather_padded
from tkg_incremental.ops.rows import touched_rows


def replicate(objective: nn.Module, world: World, ours: bool) -> nn.Module:
    """The module such that the gradients of what it returns are averaged over the processes, whole tables at a time.

    Args:
        objective: Returns losses.
        world: The processes.
        ours: Whether everything in it is of this package.
    """
    if not isinstance(world, Processes):
        return objective
    with world.talking("the weights to begin with"):
        # All tables of our models have a part in all losses of ours; what others do has to be looked at every time.
        return DistributedDataParallel(objective, process_group=world.group, find_unused_parameters=not ours)


@torch.no_grad()
def average_rows(parameters: Sequence[Tensor], world: World) -> None:
    """Averages gradients in place. Only the touched rows travel, in two messages for all tables.

    Args:
        parameters: The tables.
        world: The processes.
    """
    if not isinstance(world, Processes):
        return
    # Summed by row before they travel: a row that many facts of a batch share is sent once.
    touched = [None if p.grad is None else touched_rows(p.grad) for p in parameters]
    mine = torch.tensor([0 if t is None else len(t[0]) for t in touched], device=parameters[0].device)
    with world.talking("gradients"):
        everybodys = [torch.empty_like(mine) for _ in range(world.size)]
        dist.all_gather(everybodys, mine, group=world.group)
        counts = torch.stack(everybodys).tolist()
        # Where nobody has any, there is nothing to move.
        some = [i for i in range(len(parameters)) if any(count[i] for count in counts)]
        counts = [[count[i] for i in some] for count in counts]
        _average([parameters[i] for i in some], [touched[i] for i in some], counts, world)


def _average(
    tables: Sequence[Tensor],
    touched: Sequence[tuple[Tensor, Tensor] | None],
    counts: list[list[int]],
    world: Processes,
) -> None:
    if not tables:
        return
    widths = [table.size(1) for table in tables]
    nothing = torch.empty(0, dtype=torch.long, device=tables[0].device), tables[0].new_empty(0)
    index = torch.cat([(rows or nothing)[0] for rows in touched])
    values = torch.cat([(rows or nothing)[1].flatten() for rows in touched])
    indices = gather_padded(index, [sum(count) for count in counts], world.group)
    lengths = [sum(n * width for n, width in zip(count, widths, strict=True)) for count in counts]
    rows = gather_padded(values.div_(world.size), lengths, world.group)
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
    world.sent += index.nbytes + values.nbytes


def _sum(indices: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Rows by number, summed over processes, none of which has a number twice."""
    distinct, place = torch.unique(torch.cat(list(indices)), return_inverse=True)
    total = rows[0].new_zeros(len(distinct), rows[0].size(1))
    # One after the other, so that all processes sum in the same order, and keep the same bits.
    for where, theirs in zip(place.split([len(index) for index in indices]), rows, strict=True):
        total.index_copy_(0, where, total.index_select(0, where).add_(theirs))
    return distinct, total
