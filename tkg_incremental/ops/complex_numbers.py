"""Complex vectors whose first half is the real part and whose second half is the imaginary part."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tkg_incremental.ops.autograd import Computed, hand_on


def complex_product(a: Tensor, b: Tensor) -> Tensor:
    r"""The element-wise product of complex vectors.

    Args:
        a: ``[*, d]``.
        b: ``[*, d]``; ``a`` and ``b`` broadcast.

    Returns:
        ``[*, d]``.

    >>> complex_product(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))  # (1 + 2i)(3 + 4i)
    tensor([-5., 10.])
    """
    return _product(a, b, conjugate=False)


def product_with_conjugate(a: Tensor, b: Tensor) -> Tensor:
    r"""The element-wise product of complex vectors with the conjugates of others, both ``[*, d]``.

    >>> product_with_conjugate(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))  # (1 + 2i)(3 - 4i)
    tensor([11.,  2.])
    """
    return _product(a, b, conjugate=True)


def sum_of_moduli(x: Tensor, p: int) -> Tensor:
    r"""The sum of :math:`\lvert z \rvert^p` over all numbers :math:`z` of complex vectors, ``[*, d] → []``.

    Args:
        x: ``[*, d]``.
        p: The power, at least 2.

    >>> sum_of_moduli(torch.tensor([3.0, 4.0]), 3)  # |3 + 4i|³
    tensor(125.)
    """
    if p < 2:
        raise ValueError(f"p must be at least 2 (got {p})")
    if x.size(-1) % 2:
        raise ValueError(f"complex vectors must have an even width (got {x.size(-1)})")
    (total,) = hand_on([], [x], partial(_total, p), partial(_gradient_of_total, p))
    return total


# These are the bulk of what training does beside its matrix products: in autograd's steps each half would be cut,
# multiplied and put together again by itself, which is three times the memory traffic.


def _product(a: Tensor, b: Tensor, conjugate: bool) -> Tensor:
    a, b = torch.broadcast_tensors(a, b)
    gradients = partial(_gradients_of_product, conjugate)
    (product,) = hand_on([], [a, b], lambda a, b: (_multiply(conjugate, a, b), (a, b)), gradients)
    return product


def _multiply(conjugate: bool, a: Tensor, b: Tensor) -> Tensor:
    """``a`` times ``b`` or its conjugate."""
    out = torch.empty_like(a, memory_format=torch.contiguous_format)
    (re, im), (a_re, a_im), (b_re, b_im) = (x.chunk(2, dim=-1) for x in (out, a, b))
    sign = -1 if conjugate else 1
    torch.mul(a_re, b_re, out=re).addcmul_(a_im, b_im, value=-sign)
    torch.mul(a_im, b_re, out=im).addcmul_(a_re, b_im, value=sign)
    return out


def _gradients_of_product(conjugate: bool, grad: Tensor, _: object, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    by_b = _multiply(True, a, grad) if conjugate else _multiply(True, grad, a)
    return _multiply(not conjugate, grad, b), by_b


def _total(p: int, x: Tensor) -> Computed:
    """The sum of |z|^p, and its gradient but for the factor p."""
    re, im = x.chunk(2, dim=-1)
    squares = (re * re).addcmul_(im, im)
    # The gradient is p · |z|^(p - 2) · z: zero at zero, where a root has none.
    below = squares.sqrt() if p == 3 else squares.pow(p / 2 - 1)
    gradient = torch.empty_like(x, memory_format=torch.contiguous_format)
    for part, given in zip(gradient.chunk(2, dim=-1), (re, im), strict=True):
        torch.mul(below, given, out=part)
    return (squares * below).sum(), [gradient]


def _gradient_of_total(p: int, grad: Tensor, _: object, gradient: Tensor) -> list[Tensor]:
    return [gradient * (grad * p)]
