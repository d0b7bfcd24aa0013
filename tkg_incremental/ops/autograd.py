"""Operations whose gradients are computed by hand: in place, or together with the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: What is computed, and the tensors that its gradients are computed from.
Computed = tuple[Tensor, Sequence[Tensor]]


def hand_on(
    tables: Sequence[Tensor],
    others: Sequence[Tensor],
    compute: Callable[..., Computed],
    gradients: Callable[..., Sequence[Tensor | None]],
) -> tuple[Tensor, ...]:
    """Tables, to go on with, and a result that is computed from them and from other tensors.

    Autograd would give every use of a table a gradient of the table's size, and add them up. Here each use hands the
    tables on to the next, so that on the way back each adds to what those after it have left, in place.

    Args:
        tables: The tables.
        others: The other tensors.
        compute: Computes the result, ``compute(*tables, *others)``; returns it with the tensors to keep for the
            gradients.
        gradients: Computes the gradients of tables and others from that of the result:
            ``gradients(grad, left, *kept)``, with the gradient ``left`` by later uses of each table, or :obj:`None`.
            Must not refer to what :func:`hand_on` returns, which would then never be freed.

    Returns:
        The tables and the result.
    """
    return _HandOn.apply(len(tables), compute, gradients, *tables, *others)


def with_gradients(compute: Callable[..., Computed], *tensors: Tensor) -> Tensor:
    """A loss whose gradients are computed together with it, so that nothing else is kept for the way back.

    Args:
        compute: Computes the loss and the gradient of each tensor: ``compute(*tensors)``.
        tensors: The tensors.
    """
    (loss,) = hand_on([], tensors, compute, _scaled)
    return loss


def _scaled(grad: Tensor, _: object, *gradients: Tensor) -> Sequence[Tensor]:
    if grad.device.type != "cpu" or grad != 1:  # to read it would wait for the device
        for gradient in gradients:
            gradient.mul_(grad)  # in place: a graph is walked once here, and these are ours
    return gradients


class _HandOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, count: int, compute: Any, gradients: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        result, kept = compute(*tensors)
        ctx.save_for_backward(*kept)
        ctx.set_materialize_grads(False)
        ctx.gradients, ctx.others = gradients, len(tensors) - count
        return *tensors[:count], result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        *left, grad = grads
        if grad is None:
            return None, None, None, *left, *[None] * ctx.others
        return None, None, None, *ctx.gradients(grad, left, *ctx.saved_tensors)
