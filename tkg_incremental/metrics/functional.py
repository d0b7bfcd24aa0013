r"""Metrics as pure functions, of ranks and of the matrix :math:`\alpha`.

Ranks pool both directions, tail and head queries. Shares are in percent.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _mean(values: Tensor) -> float:
    """NaN where there is nothing to average over."""
    return float(values.double().mean()) if values.numel() else float("nan")


def hits_at(ranks: Tensor, k: int = 10) -> float:
    r"""Hits@k, :math:`\frac{100}{n} \sum_i [rank_i \le k]`.

    >>> hits_at(torch.tensor([1.0, 11.0]), k=10)
    50.0
    """
    return 100 * _mean((ranks <= k).double())


def mean_reciprocal_rank(ranks: Tensor) -> float:
    r"""MRR, :math:`\frac{100}{n} \sum_i \frac{1}{rank_i}`.

    >>> mean_reciprocal_rank(torch.tensor([1.0, 2.0]))
    75.0
    """
    return 100 * _mean(1 / ranks.double())


def mean_rank(ranks: Tensor) -> float:
    """The mean of the ranks."""
    return _mean(ranks)


def deleted_hits_at(deleted_ranks: Tensor, k: int = 10) -> float:
    r"""DF@k: how often a deleted fact is among the first :math:`k`. Lower is better.

    Args:
        deleted_ranks: Raw ranks of the deleted answers of every test row, one after the other.
        k: How many count as the top.
    """
    return hits_at(deleted_ranks, k)


def reciprocal_rank_difference(ranks: Tensor, deleted_ranks: Tensor, row_of_deleted: Tensor) -> float:
    r"""RRD, :math:`\frac{100}{Z} \sum_{(s,r,o,t)} \sum_{o'} \left( \frac{1}{rank(o)} - \frac{1}{rank(o')} \right)`:
    by how much current facts outrank the facts they replaced. Higher is better; above 0 they do.

    Args:
        ranks: ``[n]`` raw ranks of the test rows' answers.
        deleted_ranks: ``[Z]`` raw ranks of deleted answers.
        row_of_deleted: ``[Z]`` the test row each deleted answer belongs to.

    >>> reciprocal_rank_difference(torch.tensor([1.0]), torch.tensor([2.0, 4.0]), torch.tensor([0, 0]))
    62.5
    """
    return 100 * _mean(1 / ranks.double()[row_of_deleted] - 1 / deleted_ranks.double())


def average(alpha_row: Tensor, first: int = 0) -> float:
    r"""A, :math:`\frac{1}{t} \sum_{j \le t} \alpha_{t,j}` of one model's row of :math:`\alpha`.

    Args:
        alpha_row: ``[t + 1]`` Hits@10 on every step so far; NaN where a step has no rows.
        first: First step that counts: 0 as in the paper, the base step as in the released code.
    """
    row = alpha_row[first:]
    return _mean(row[~row.isnan()])


def forgetting(alpha: Tensor, t: int) -> float:
    r"""F, :math:`\frac{1}{t} \sum_{i<t} \left( \max_{l<t} \alpha_{l,i} - \alpha_{t,i} \right)`.

    Args:
        alpha: ``[T, T]``, row :math:`t` the model after step :math:`t`; NaN where there is no value.
        t: The step.
    """
    earlier = alpha[:t, :t]
    best = earlier.nan_to_num(nan=-torch.inf).amax(0) if t else earlier.new_empty(0)
    lost = (best - alpha[t, :t])[best.isfinite()]
    return _mean(lost[~lost.isnan()])
