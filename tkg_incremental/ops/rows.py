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
    return _LookUp.apply(table, index)


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        return F.embedding(index, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (index,) = ctx.saved_tensors
        width = grad.size(-1)
        return grad.new_zeros(ctx.rows, width).index_add_(0, index.flatten(), grad.reshape(-1, width)), None


def with_rows(table: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The table, to go on with, and some of its rows, ``[N, d], [*] → [N, d], [*, d]``.

    Their gradients are summed in place: a look-up beside another use would cost a gradient of the table's size.
    """
    return _WithRows.apply(table, index)


class _WithRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(index)
        return table, F.embedding(index, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_table: Tensor, grad_rows: Tensor) -> tuple[Tensor | None, ...]:
        (index,) = ctx.saved_tensors
        return grad_table.index_add_(0, index.flatten(), grad_rows.reshape(-1, grad_table.size(1))), None


def squared_change(table: Tensor, index: Tensor, before: Tensor) -> Tensor:
    """How far some rows of a table are from what they were, ``[N, d], [n], [n, d] → []``: the sum of squares."""
    return _SquaredChange.apply(table, index, before)


class _SquaredChange(torch.autograd.Function):
    # The rows are distinct, so their gradients are put in their places, and no sums are needed.

    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, before: Tensor) -> Tensor:
        change = F.embedding(index, table).sub_(before)
        ctx.save_for_backward(index, change)
        ctx.rows = len(table)
        return change.flatten().dot(change.flatten())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        index, change = ctx.saved_tensors
        whole = change.new_zeros(ctx.rows, change.size(1))
        return whole.index_copy_(0, index, change * (2 * grad)), None, None


def touched_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """(index, rows) of a gradient's rows that are not zero, by ascending index."""
    if gradient.is_sparse:
        gradient = gradient.coalesce()
        index, rows = gradient.indices()[0], gradient.values()
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
