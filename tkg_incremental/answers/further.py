"""How many answers a question has beyond those that are known."""

from __future__ import annotations

import torch
from torch import Tensor

# A relation of few facts: one more fact is counted, with half an answer beyond those that are known.
_PRIOR = 0.5


def further_answers(rows: Tensor, num_steps: int) -> Tensor:
    r"""Expected number of further answers beside :math:`n` known ones, :math:`E[N - n \mid N \ge n]`, ``[m]`` for
    :math:`n = 0, \dots, m - 1`, where the last stands for all larger :math:`n`.

    :math:`N` is the number of facts of a given entity that hold at one step. All steps count for each entity that has a
    fact, also those without one. The unit of the counts is the mean duration of a fact, so that graphs in days and in
    years give the same. The expectation beside one answer is the least beside several: that no larger number has been
    seen does not mean that the list is complete.

    Args:
        rows: ``[k, 3]`` given entity, first and last step of the facts of a relation. The intervals of a triple are
            disjoint.
        num_steps: Number of steps.

    >>> further_answers(torch.tensor([[0, 0, 4], [0, 5, 9], [1, 0, 4]]), 10)  # an office
    tensor([0.7000, 0.1250], dtype=torch.float64)
    """
    rows = rows[rows[:, 1] <= rows[:, 2]]
    time = _time_by_number(rows, num_steps)
    if len(rows):
        time = time / (rows[:, 2] - rows[:, 1] + 1).double().mean()
    number = torch.arange(len(time), dtype=torch.double)
    at_least = time.flip(0).cumsum(0).flip(0)
    answers = (time * number).flip(0).cumsum(0).flip(0)
    expected = (answers - number * at_least + _PRIOR) / (at_least + 1)
    if len(expected) > 1:
        expected[1:] = expected[1:].clamp(min=float(expected[1]))
    return expected


def _time_by_number(rows: Tensor, num_steps: int) -> Tensor:
    """``[m]`` the number of steps at which 0, 1, ... facts of an entity hold, summed over the entities of ``rows``."""
    # Ends first: a fact that follows another one at once does not hold beside it.
    given, step = rows[:, 0].repeat(2), torch.cat([rows[:, 2] + 1, rows[:, 1]])
    change = torch.tensor([-1, 1]).repeat_interleave(len(rows))
    # By entity, then by step; the facts of an entity have all ended after its last change.
    order = torch.argsort(step, stable=True)
    order = order[torch.argsort(given[order], stable=True)]
    given, step, holding = given[order], step[order], change[order].cumsum(0)
    length = torch.where(given[1:] == given[:-1], step[1:] - step[:-1], 0)
    time = torch.zeros(int(holding.max()) + 1 if len(rows) else 2, dtype=torch.double)
    time.index_add_(0, holding[:-1], length.double())
    time[0] = num_steps * len(torch.unique(given)) - time[1:].sum()
    return time
