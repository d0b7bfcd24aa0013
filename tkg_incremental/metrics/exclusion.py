"""Ranks with some candidates excluded: they rank behind all others, as if their score were minus infinity."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.ops.keys import find_all
from tkg_incremental.ops.ranking import RankedAnswers, ranks_of

#: The query of each excluded candidate, ascending, and its position among the candidates, each ``[E]``.
Excluded = tuple[Tensor, Tensor]


def ignore_excluded(answers: RankedAnswers, excluded: Excluded, num_candidates: int) -> RankedAnswers:
    """Each answer twice: for its filtered rank it ignores excluded candidates besides those it ignores already, for
    its raw rank excluded candidates alone."""
    answer, place = find_all(excluded[0], answers.owner)
    column = excluded[1][place]
    parts = (2 * answers.ignored[0], answers.ignored[1]), (2 * answer, column), (2 * answer + 1, column)
    answer, column = (torch.cat(part) for part in zip(*parts, strict=True))
    key = torch.unique(answer * num_candidates + column)
    owner, column = (each.repeat_interleave(2) for each in (answers.owner, answers.column))
    return RankedAnswers(answers.query, owner, column, (key // num_candidates, key % num_candidates))


def ranks_with_excluded(
    answers: RankedAnswers, excluded: Excluded, num_candidates: int, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Filtered and raw ranks of answers, from the counts of :func:`ignore_excluded`, ``[2P, 4] → 2 × [P]``."""
    both = ignore_excluded(answers, excluded, num_candidates)
    key = both.owner * num_candidates + both.column
    is_excluded = torch.isin(key, excluded[0] * num_candidates + excluded[1])
    ignored = torch.bincount(both.ignored[0], minlength=len(both))
    # Excluded candidates that are not filtered are tied with an excluded answer: half of them count as better.
    filtered = answers.ignored[0][answers.ignored[1] != answers.column[answers.ignored[0]]]
    tied = ignored - 1
    tied[::2] -= torch.bincount(filtered, minlength=len(answers))
    last = 1 + num_candidates - ignored + tied / 2
    found = torch.where(is_excluded, last, ranks_of(counts)[0]).view(-1, 2)
    return found[:, 0], found[:, 1]
