"""Rows of tables, with gradients that cost no more than they must."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.ops import native


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows of a table, ``[N, d], [*] → [*, d]``; the gradient is dense, and cheaper than that of ``F.embedding``."""
    return _WithRows.apply(table, index)[1]


def with_rows(table: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The table, to go on with, and some of its rows, ``[N, d], [*] → [N, d], [*, d]``.

    Their gradients are summed in place: a look-up beside another use would cost a gradient of the table's size.
    """
    return _WithRows.apply(table, index)


class _WithRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(index)
        ctx.set_materialize_grads(False)
        ctx.shape = table.shape
        return table, F.embedding(index, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_table: Tensor | None, grad_rows: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad_rows is None:
            return grad_table, None
        (index,) = ctx.saved_tensors
        if grad_table is None:
            grad_table = grad_rows.new_zeros(ctx.shape)
        return grad_table.index_add_(0, index.flatten(), grad_rows.reshape(-1, grad_table.size(1))), None


def pull_back(gradient: Tensor, table: Tensor, former: Tensor, index: Tensor, strength: float) -> None:
    """Adds to the gradient of some distinct rows of a table ``strength`` times how far they are from what they were."""
    if native.takes(gradient, table, former, index) and gradient.is_contiguous():
        by = torch.tensor(strength, dtype=torch.float32)
        native.call("pull_back", table, former, index, gradient, by, len(index), table.size(1))
    else:
        change = table.index_select(0, index).sub_(former.index_select(0, index))
        gradient.index_add_(0, index, change, alpha=strength)


def pull_back_rows(
    gradient: Tensor, table: Tensor, index: Tensor, former: Tensor, strength: Tensor, slots: Tensor | None
) -> None:
    """:func:`pull_back` for a gradient ``[n, d]`` of some rows alone. What a row was, ``[N, d]``, and how strongly it
    is pulled, ``[N, 1]``, stand at its slot, or without slots at its place in ``index``."""
    if native.takes(gradient, table, former, index) and gradient.is_contiguous():
        native.call("pull_back_rows", table, index, former, slots, gradient, strength, *gradient.shape)
    else:
        if slots is not None:
            former, strength = former.index_select(0, slots), strength.index_select(0, slots)
        gradient.addcmul_(table.index_select(0, index).sub_(former), strength)


def former_rows(table: Tensor, index: Tensor, slot_of: Tensor, former: Tensor) -> Tensor:
    """Rows as they were, ``[*] → [*, d]``: from ``former`` where ``slot_of``, ``[N]`` of 32 bits, has a slot, and from
    the table where it has -1."""
    if native.takes(table, index, former):
        rows = table.new_empty(*index.shape, table.size(1))
        native.call("former_rows", table, index.contiguous(), slot_of, former, rows, index.numel(), table.size(1))
        return rows
    rows = F.embedding(index, table)
    if len(former):
        slots = slot_of[index]
        touched = (slots >= 0).nonzero(as_tuple=True)
        rows[touched] = former.index_select(0, slots[touched].long())
    return rows


def touched_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """(index, rows) of a gradient's rows that are not zero, by ascending index."""
    if gradient.is_sparse:
        index = gradient._indices()[0]
        if not bool((index[1:] > index[:-1]).all()):  # autograd does not hand on that a gradient is coalesced
            gradient = gradient.coalesce()
            index = gradient.indices()[0]
        rows = gradient._values()
        used = rows_not_zero(rows)
        if len(used) == len(index):
            return index, rows
        return index.index_select(0, used), rows.index_select(0, used)
    index = rows_not_zero(gradient)
    return index, gradient.index_select(0, index)


def rows_not_zero(matrix: Tensor) -> Tensor:
    """Index of the rows of a matrix in which something is not zero."""
    if native.takes(matrix) and matrix.is_contiguous():
        marks = torch.empty(len(matrix), dtype=torch.long)
        native.call("rows_not_zero", matrix, marks, *matrix.shape)
        return marks.nonzero().squeeze(1)
    return matrix.abs().amax(1).nonzero().squeeze(1)
