"""Penalties on factors and on time tables, as plain functions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def n3(factors: Sequence[Tensor], weights: Sequence[float] | None = None) -> Tensor:
    r"""The nuclear 3-norm penalty of the `"Canonical Tensor Decomposition for Knowledge Base Completion"
    <https://arxiv.org/abs/1806.07297>`_ paper, on the complex factors of a batch of facts.

    .. math::
        \frac{1}{B} \sum_{b=1}^{B} \sum_f w_f \sum_n \lvert f_b[n] \rvert^3, \qquad
        \lvert z \rvert = \sqrt{\mathrm{Re}(z)^2 + \mathrm{Im}(z)^2}

    The factors of TComplEx are the head, the relation at the step, :math:`\mathbf{r} \odot \boldsymbol{\tau}_t`, and
    the tail. Those of TNTComplEx are the head, both parts of the relation, and the tail; as the score is a sum of two
    products, the ends count twice, ``weights=[2, 1, 1, 2]``.

    Args:
        factors: Each ``[B, d]``; the first half is the real part, the second half the imaginary part.
        weights: Weight of each factor, by default one.

    Returns:
        A scalar, to be multiplied by the strength of the penalty.
    """
    return nuclear_norm(factors, 3, weights)


def nuclear_norm(factors: Sequence[Tensor], p: int = 3, weights: Sequence[float] | None = None) -> Tensor:
    r"""As :func:`n3`, with any power of the moduli: in the paper of ChronoR, :math:`p = 4`.

    Args:
        factors: Each ``[B, d]``; the first half is the real part, the second half the imaginary part.
        p: The power, at least 2.
        weights: Weight of each factor, by default one.
    """
    if not factors:
        raise ValueError("factors must not be empty")
    weights = [1.0] * len(factors) if weights is None else weights
    if len(weights) != len(factors):
        raise ValueError(f"weights must be one for each of {len(factors)} factors (got {len(weights)})")
    parts = [w * _moduli_to(factor, p).sum() / len(factor) for w, factor in zip(weights, factors, strict=True)]
    return torch.stack(parts).sum()


def temporal_smoothness(table: Tensor, p: int = 3) -> Tensor:
    r"""The smoothness of a time table from the `"Tensor Decompositions for Temporal Knowledge Base Completion"
    <https://arxiv.org/abs/2004.04926>`_ paper: neighbouring steps should have similar vectors.

    .. math::
        \frac{1}{T - 1} \sum_{i=1}^{T-1} \lVert \boldsymbol{\tau}_{i+1} - \boldsymbol{\tau}_i \rVert_p^p, \qquad
        \lVert \mathbf{z} \rVert_p^p = \sum_n \lvert \mathbf{z}[n] \rvert^p

    Args:
        table: ``[T, d]``, complex rows; the first half is the real part, the second half the imaginary part.
        p: The power: 3 in the paper; 4 in that of ChronoR.

    Returns:
        A scalar; zero for a table of one step.
    """
    if len(table) < 2:
        return table.new_zeros(())
    return _moduli_to(table[1:] - table[:-1], p).sum() / (len(table) - 1)


def _moduli_to(x: Tensor, p: int) -> Tensor:
    """Moduli of complex channels to a power, ``[*, d] → [*, d / 2]``."""
    if p < 2:
        raise ValueError(f"p must be at least 2 (got {p})")
    if x.size(-1) % 2:
        raise ValueError(f"complex vectors must have an even width (got {x.size(-1)})")
    re, im = x.chunk(2, dim=-1)
    squared = re.square() + im.square()
    if p == 4:
        return squared.square()
    # The root has no gradient at zero, and rows that are equal, as a copied step's, have a difference of zero.
    squared = squared.clamp_min(torch.finfo(x.dtype).tiny)
    # A root and a product cost a fraction of a power.
    return squared * squared.sqrt() if p == 3 else squared.pow(p / 2)
