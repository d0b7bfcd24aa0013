"""Counting the ranks of several sets of answers, each process a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tkg_incremental.distributed.world import ALONE, World
from tkg_incremental.ops.ranking import Blocking, RankCounts, count_ranks
from tkg_incremental.ops.scores import Similarity


@dataclass
class Answers:
    """Answers whose ranks are wanted, as :func:`~tkg_incremental.ops.ranking.count_ranks` takes them.

    Args:
        query: ``[Q, d]`` query vectors.
        owner: ``[P]`` the query of each answer, ascending.
        column: ``[P]`` the answer's place among the candidates.
        ignored: (answer, column) pairs a filtered rank leaves out, by ascending answer, each ``[M]``.
    """

    query: Tensor
    owner: Tensor
    column: Tensor
    ignored: tuple[Tensor, Tensor]

    def __len__(self) -> int:
        return len(self.owner)

    def part(self, start: int, end: int) -> Answers:
        """Some of the answers."""
        low, high = torch.searchsorted(self.ignored[0], torch.tensor([start, end], device=self.owner.device)).tolist()
        ignored = (self.ignored[0][low:high] - start, self.ignored[1][low:high])
        return Answers(self.query, self.owner[start:end], self.column[start:end], ignored)

    def count(self, candidates: Tensor, similarity: Similarity) -> RankCounts:
        """How many of the candidates are better than each answer."""
        return count_ranks(self.query, candidates, self.owner, self.column, self.ignored, similarity)


def count_together(
    sets: Sequence[Answers], candidates: Tensor, similarity: Similarity, world: World = ALONE
) -> list[RankCounts]:
    """The counts of each set of answers, on all processes, to the same bits for any number of them.

    Products of other sizes may differ in their last bits, so the work is divided between the products that one process
    would make, and never within one.

    Args:
        sets: The answers.
        candidates: ``[n, d]`` the candidates of all of them.
        similarity: How queries and candidates are compared.
        world: The processes that share the work.
    """
    if world.size == 1:
        return [answers.count(candidates, similarity) for answers in sets]
    at_a_time = Blocking(len(candidates)).together
    parts = [(answers, start) for answers in sets for start in range(0, len(answers), at_a_time)]
    mine = parts[len(parts) * world.rank // world.size : len(parts) * (world.rank + 1) // world.size]
    counts = [answers.part(start, start + at_a_time).count(candidates, similarity) for answers, start in mine]
    counted = [torch.stack([c.better, c.tied, c.ignored_better, c.ignored_tied], dim=1) for c in counts]
    nothing = torch.empty(0, 4, dtype=torch.long, device=candidates.device)
    everything = torch.cat(world.gather(torch.cat([nothing, *counted])))
    return [RankCounts(*each.unbind(1)) for each in everything.split([len(answers) for answers in sets])]
