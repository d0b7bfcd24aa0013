r"""Metrics as pure functions, of ranks and of :math:`\alpha`.

Ranks pool tail and head queries. Shares are in percent. :math:`\alpha_{t,j}` is Hits@10 on the quads of step :math:`j`
with the model after step :math:`t`. A row of it is a mapping :math:`j \mapsto \alpha_{t,j}` with entries for the steps
that were evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor


def _mean(values: Tensor) -> float:
    """The mean, or NaN without values."""
    return float(torch.mean(values.double())) if values.numel() else float("nan")


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
    r"""DF@k: the share of deleted facts that are ranked among the first :math:`k`. Lower is better.

    Args:
        deleted_ranks: ``[Z]`` raw ranks of the deleted answers of all test quads.
        k: Number of top ranks.

    >>> deleted_hits_at(torch.tensor([1.0, 3.0, 11.0, 20.0]))
    50.0
    """
    return hits_at(deleted_ranks, k)


def reciprocal_rank_difference(ranks: Tensor, deleted_ranks: Tensor, row_of_deleted: Tensor) -> float:
    r"""RRD, :math:`\frac{100}{Z} \sum_{(s,r,o,t)} \sum_{o'} \left( \frac{1}{rank(o)} - \frac{1}{rank(o')} \right)`:
    by how much current facts outrank the facts they replaced. Higher is better.

    Args:
        ranks: ``[n]`` raw ranks of the test quads' answers.
        deleted_ranks: ``[Z]`` raw ranks of deleted answers.
        row_of_deleted: ``[Z]`` the test quad each deleted answer belongs to.

    >>> reciprocal_rank_difference(torch.tensor([1.0]), torch.tensor([2.0, 4.0]), torch.tensor([0, 0]))
    62.5
    """
    return 100 * _mean(1 / ranks.double()[row_of_deleted] - 1 / deleted_ranks.double())


def average(alpha_row: Mapping[int, float], first: int = 0) -> float:
    r"""A, :math:`\frac{1}{t} \sum_{j \le t} \alpha_{t,j}` of one model's row of :math:`\alpha`.

    Args:
        alpha_row: Step → Hits@10. Steps without an entry, or with NaN, do not count.
        first: First step that counts: 0 as in the paper, the base step as in the released code.

    >>> average({0: 20.0, 1: 40.0, 4: 60.0}, first=1)
    50.0
    """
    values = [value for step, value in alpha_row.items() if step >= first and not math.isnan(value)]
    return sum(values) / len(values) if values else float("nan")


def forgetting(history: Mapping[int, Mapping[int, float]], t: int) -> float:
    r"""F, :math:`\frac{1}{t} \sum_{i<t} \left( \max_{l<t} \alpha_{l,i} - \alpha_{t,i} \right)`.

    Args:
        history: Row of :math:`\alpha` of the model after each step. Steps :math:`i` without an entry in row
            :math:`t`, or in all earlier rows, do not count.
        t: The step.

    >>> forgetting({0: {0: 50.0}, 1: {0: 80.0, 1: 40.0}, 2: {0: 60.0, 1: 50.0, 2: 10.0}}, t=2)
    5.0
    """
    best: dict[int, float] = {}
    for model, row in history.items():
        if model < t:
            for step, value in row.items():
                if not math.isnan(value):
                    best[step] = max(value, best.get(step, value))
    now = history.get(t, {})
    lost = [best[step] - value for step, value in now.items() if step < t and step in best and not math.isnan(value)]
    return sum(lost) / len(lost) if lost else float("nan")
