"""Averaging gradients over processes: whole tables, or the rows that somebody touched."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tkg_incremental.distributed.world import Processes, World, gather_padded

_DENSE = -1


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
    """Averages gradients in place. Of sparse ones only the touched rows travel, in two messages for all tables.

    Args:
        parameters: The tables.
        world: The processes.
    """
    if not isinstance(world, Processes):
        return
    # Sorted and summed by row before they travel: a row that many facts of a batch share is sent once.
    gradients = [p.grad.coalesce() if p.grad is not None and p.grad.is_sparse else p.grad for p in parameters]
    mine = torch.tensor([_count(gradient) for gradient in gradients], device=parameters[0].device)
    with world.talking("gradients"):
        everybodys = [torch.empty_like(mine) for _ in range(world.size)]
        dist.all_gather(everybodys, mine, group=world.group)
        counts = torch.stack(everybodys).tolist()
        dense = [any(count[i] == _DENSE for count in counts) for i in range(len(gradients))]
        _average_dense([i for i, is_so in enumerate(dense) if is_so], parameters, world)
        # Where nobody has any, there is nothing to move.
        sparse = [i for i in range(len(gradients)) if not dense[i] and any(count[i] for count in counts)]
        _average_sparse(sparse, parameters, gradients, counts, world)


def _average_dense(which: Sequence[int], parameters: Sequence[Tensor], world: Processes) -> None:
    for i in which:
        gradient = parameters[i].grad
        whole = torch.zeros_like(parameters[i]) if gradient is None else gradient.to_dense()
        dist.all_reduce(whole, group=world.group)
        parameters[i].grad = whole.div_(world.size)
        world.sent += whole.nbytes


def _average_sparse(
    which: Sequence[int],
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    counts: list[list[int]],
    world: Processes,
) -> None:
    if not which:
        return
    widths = [parameters[i].size(1) for i in which]
    counts = [[count[i] for i in which] for count in counts]
    empty = torch.empty(0, dtype=torch.long, device=parameters[0].device)
    there = [gradients[i] for i in which]
    index = torch.cat([empty if g is None else g.indices()[0] for g in there])
    values = torch.cat([parameters[0].new_empty(0) if g is None else g.values().flatten() for g in there])
    indices = gather_padded(index, [sum(count) for count in counts], world.group)
    lengths = [sum(n * width for n, width in zip(count, widths, strict=True)) for count in counts]
    rows = gather_padded(values.div_(world.size), lengths, world.group)
    index_parts = [part.split(count) for part, count in zip(indices, counts, strict=True)]
    row_parts = [
        part.split([n * width for n, width in zip(count, widths, strict=True)])
        for part, count in zip(rows, counts, strict=True)
    ]
    for place, i in enumerate(which):
        table = parameters[i]
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


def _count(gradient: Tensor | None) -> int:
    if gradient is None:
        return 0
    return gradient._nnz() if gradient.is_sparse else _DENSE
