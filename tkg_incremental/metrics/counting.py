"""Counting the ranks of several sets of answers, divided among the processes of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.ops.ranking import Blocking, RankCounts, count_ranks
from tkg_incremental.ops.scores import Similarity

if TYPE_CHECKING:
    from tkg_incremental.models import TKGModel


@dataclass
class Answers:
    """Answers to rank, as :func:`~tkg_incremental.ops.ranking.count_ranks` takes them.

    Args:
        query: ``[Q, d]`` query vectors.
        owner: ``[P]`` the query of each answer, ascending.
        column: ``[P]`` the answer's position among the candidates.
        ignored: (answer, column) pairs that a filtered rank leaves out, by ascending answer, each ``[M]``.
    """

    query: Tensor
    owner: Tensor
    column: Tensor
    ignored: tuple[Tensor, Tensor]

    def __len__(self) -> int:
        return len(self.owner)

    def part(self, start: int, end: int) -> Answers:
        """The answers ``start … end - 1``."""
        low, high = torch.searchsorted(self.ignored[0], torch.tensor([start, end], device=self.owner.device)).tolist()
        ignored = (self.ignored[0][low:high] - start, self.ignored[1][low:high])
        return Answers(self.query, self.owner[start:end], self.column[start:end], ignored)

    def count(self, candidates: Tensor, similarity: Similarity) -> RankCounts:
        """Counts the candidates with a better or the same score for each answer."""
        return count_ranks(self.query, candidates, self.owner, self.column, self.ignored, similarity)


class RankCounter:
    """Counts ranks of answers among the candidates of a step.

    Every process has the whole model and counts some of the answers. Other layouts of a model override
    :meth:`__call__`.
    """

    #: Whether processes may rank different steps at the same time. If not, all of them take part in every step.
    shares_steps: bool = True

    def __call__(
        self, sets: Sequence[Answers], model: TKGModel, known: Tensor, step: int, communicator: Communicator = LOCAL
    ) -> list[RankCounts]:
        """The counts of each set of answers, on all processes, with the same bits for any number of processes.

        Products of other sizes may differ in their last bits, so the work is divided between the products that one
        process would compute, never within one.

        Args:
            sets: The answers, the same on all processes.
            model: The model.
            known: ``[n]`` the candidates; an answer's column is its position among them.
            step: The step whose vectors the candidates have.
            communicator: Connects the processes that share the work.
        """
        candidates, similarity = model.candidate_vectors(known, step), model.decoder.similarity
        rank, size = communicator.rank, communicator.size
        if size == 1:
            return [answers.count(candidates, similarity) for answers in sets]
        at_once = Blocking(len(candidates)).together
        parts = [(answers, start) for answers in sets for start in range(0, len(answers), at_once)]
        mine = parts[len(parts) * rank // size : len(parts) * (rank + 1) // size]
        counts = [answers.part(start, start + at_once).count(candidates, similarity) for answers, start in mine]
        counted = [torch.stack([c.better, c.tied, c.ignored_better, c.ignored_tied], dim=1) for c in counts]
        nothing = torch.empty(0, 4, dtype=torch.long, device=candidates.device)
        everything = torch.cat(communicator.gather(torch.cat([nothing, *counted])))
        return [RankCounts(*each.unbind(1)) for each in everything.split([len(answers) for answers in sets])]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
