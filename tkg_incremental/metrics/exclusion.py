"""Ranks with some candidates excluded: they rank behind all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tkg_incremental.metrics.counting import Answers
from tkg_incremental.ops.keys import segment_arange
from tkg_incremental.ops.ranking import RankCounts


@dataclass
class Exclusion:
    """The excluded candidates of some queries. They rank as if their score were :math:`-\\infty`.

    Args:
        query: ``[E]`` the query of each excluded candidate, ascending.
        column: ``[E]`` its position among the candidates.
        num_candidates: Number of candidates of each query.
    """

    query: Tensor
    column: Tensor
    num_candidates: int

    def twice(self, answers: Answers) -> Answers:
        """Each answer twice: for its filtered rank it ignores excluded candidates besides those it ignores already, for
        its raw rank excluded candidates alone."""
        members = torch.bincount(self.query, minlength=len(answers.query))
        answer, place = pair_up(answers.owner, members)
        column = self.column[place]
        parts = (2 * answers.ignored[0], answers.ignored[1]), (2 * answer, column), (2 * answer + 1, column)
        answer, column = (torch.cat(part) for part in zip(*parts, strict=True))
        key = torch.unique(answer * self.num_candidates + column)
        ignored = key // self.num_candidates, key % self.num_candidates
        owner, column = (each.repeat_interleave(2) for each in (answers.owner, answers.column))
        return Answers(answers.query, owner, column, ignored)

    def ranks(self, answers: Answers, counts: RankCounts) -> Ranks:
        """The ranks of answers from the counts of :meth:`twice`."""
        both = self.twice(answers)
        excluded = self.query * self.num_candidates + self.column
        is_excluded = torch.isin(both.owner * self.num_candidates + both.column, excluded)
        ignored = torch.bincount(both.ignored[0], minlength=len(both))
        # Excluded candidates that are not filtered are tied with an excluded answer: half of them count as better.
        filtered = answers.ignored[0][answers.ignored[1] != answers.column[answers.ignored[0]]]
        tied = ignored - 1
        tied[::2] -= torch.bincount(filtered, minlength=len(answers))
        last = 1 + self.num_candidates - ignored + tied / 2
        return Ranks(*torch.where(is_excluded, last, counts.filtered).view(-1, 2).unbind(1))


class Ranks(NamedTuple):
    """Filtered and raw ranks of answers, each ``[P]``."""

    filtered: Tensor
    raw: Tensor


def pair_up(group_of_row: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """For each row and each member of its group: (row, position of the member if groups are stored end to end)."""
    counts = members[group_of_row]
    row = torch.repeat_interleave(torch.arange(len(group_of_row), device=members.device), counts)
    start = torch.cumsum(members, 0) - members
    return row, start[group_of_row[row]] + segment_arange(counts)
