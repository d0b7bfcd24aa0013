"""Vectors of two halves: real and imaginary part, or the roles of head and tail."""

from __future__ import annotations

import torch
from torch import Tensor


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the second half of the last dimension."""
    half = x.size(-1) // 2  # unlike with `chunk`, there are two parts even if there are no channels
    first, second = x.split([half, x.size(-1) - half], dim=-1)
    return first, second


def join_halves(a: Tensor, b: Tensor) -> Tensor:
    """The first half of each, then the second half of each: ``[*, a], [*, b] → [*, a + b]``."""
    (a_1, a_2), (b_1, b_2) = halves(a), halves(b)
    return torch.cat([a_1, b_1, a_2, b_2], dim=-1)
