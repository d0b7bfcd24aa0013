"""Rows of tables, with gradients that cost no more than they must."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.autograd import hand_on


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows of a table, ``[N, d], [*] → [*, d]``; the gradient is dense, and cheaper than that of ``F.embedding``."""
    return with_rows(table, index)[1]


def with_rows(table: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The table, to go on with (:func:`~tkg_incremental.ops.autograd.hand_on`), and some of its rows,
    ``[N, d], [*] → [N, d], [*, d]``."""
    table, rows = hand_on(
        [table], [], lambda table: (F.embedding(index, table), [table]), partial(_gradient_of_rows, index)
    )
    return table, rows


def _gradient_of_rows(index: Tensor, grad: Tensor, left: Sequence[Tensor | None], table: Tensor) -> list[Tensor]:
    total = grad.new_zeros(table.shape) if left[0] is None else left[0]
    return [total.index_add_(0, index.flatten(), grad.reshape(-1, table.size(1)))]


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
