r"""Metrics as pure functions, of ranks and of :math:`\alpha`.

Ranks pool tail and head queries. Shares are in percent. :math:`\alpha_{t,j}` is Hits@10 on the quads of step :math:`j`
with the model after step :math:`t`. A row of it is a mapping :math:`j \mapsto \alpha_{t,j}` with entries for the steps
that were evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

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
    return _mean_of(value for step, value in alpha_row.items() if step >= first)


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
    return _mean_of(lost)


def backward_transfer(history: Mapping[int, Mapping[int, float]]) -> float:
    r"""BWT, :math:`\frac{1}{T - 1} \sum_{i<T} (\alpha_{T,i} - \alpha_{i,i})` with the last model :math:`T`: what later
    steps changed about earlier ones. Negative if the model forgets.

    Args:
        history: Row of :math:`\alpha` of the model after each step. Only steps that were learnt count, and only those
            with an entry in their own row and in the last row.

    >>> backward_transfer({0: {0: 50.0}, 1: {0: 80.0, 1: 40.0}, 2: {0: 60.0, 1: 30.0, 2: 10.0}})
    0.0
    """
    if not history:
        return float("nan")
    final = history[max(history)]
    changes = [final.get(i, math.nan) - row.get(i, math.nan) for i, row in history.items() if i < max(history)]
    return _mean_of(changes)


def forward_transfer(before: Mapping[int, float]) -> float:
    r"""FWT, :math:`\frac{1}{T} \sum_i \alpha_{i-1,i}`: Hits@10 on each step just before it is learnt.

    Args:
        before: Step → Hits@10 of the model after the step before it.

    >>> forward_transfer({1: 20.0, 2: 40.0})
    30.0
    """
    return _mean_of(before.values())


def omega_new(history: Mapping[int, Mapping[int, float]], ideal: Mapping[int, float] | None = None) -> float:
    r""":math:`\Omega_{new} = \frac{1}{T} \sum_t \frac{\alpha_{t,t}}{\alpha^*_t}`: how well each step is known right
    after it was learnt, from `"Measuring Catastrophic Forgetting in Neural Networks"
    <https://arxiv.org/abs/1708.02072>`_.

    Args:
        history: Row of :math:`\alpha` of the model after each step.
        ideal: Step → Hits@10 :math:`\alpha^*` of a model trained on all steps at once; 100 by default.

    >>> omega_new({1: {0: 50.0, 1: 40.0}, 2: {0: 40.0, 1: 30.0, 2: 20.0}}, ideal={1: 80.0, 2: 40.0})
    0.5
    """
    return _mean_of([_relative(row.get(t, math.nan), t, ideal) for t, row in history.items()])


def omega_old(history: Mapping[int, Mapping[int, float]], ideal: Mapping[int, float] | None = None) -> float:
    r""":math:`\Omega_{old} = \frac{1}{T} \sum_t \frac{1}{t} \sum_{i<t} \frac{\alpha_{t,i}}{\alpha^*_i}`: how well
    earlier steps are known after each step.

    Args:
        history: Row of :math:`\alpha` of the model after each step.
        ideal: Step → Hits@10 :math:`\alpha^*` of a model trained on all steps at once; 100 by default.

    >>> omega_old({1: {0: 50.0, 1: 40.0}, 2: {0: 40.0, 1: 20.0, 2: 20.0}})
    0.4
    """
    return _mean_of(
        [_mean_of([_relative(value, i, ideal) for i, value in row.items() if i < t]) for t, row in history.items()]
    )


def _relative(value: float, step: int, ideal: Mapping[int, float] | None) -> float:
    best = 100.0 if ideal is None else ideal.get(step, math.nan)
    return value / best if best else math.nan


def _mean_of(values: Iterable[float]) -> float:
    """The mean of the values that are not NaN, or NaN."""
    there = [value for value in values if not math.isnan(value)]
    return sum(there) / len(there) if there else float("nan")
