"""Appending steps to a table of facts, at a cost that follows the change."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.ops.answers import LAST, OPEN
from tkg_incremental.ops.growing import Growing


class Growth:
    """The state of a growing table of facts.

    Facts are only appended, since a new fact begins last. Facts that hold at the last step are open: their last step is
    ``OPEN``, so that nothing is written for facts that continue. The list of ended facts, sorted by last step, is
    only appended to as well.

    Args:
        facts: ``[F, 5]`` facts sorted by first step.
        keys: ``[F]`` a number for the triple of each fact.
        ends: ``[F, 5]`` the same facts sorted by last step.
        end_keys: ``[F]`` their triples.
        next_first: ``[F]`` first step of the next interval of the same triple, or a step after all steps.
        num_steps: Number of steps.
    """

    def __init__(
        self, facts: Tensor, keys: Tensor, ends: Tensor, end_keys: Tensor, next_first: Tensor, num_steps: int
    ) -> None:
        self.facts, self.keys = Growing(facts), Growing(keys)
        is_open = facts[:, LAST] >= num_steps - 1
        self.facts.values[is_open, LAST] = OPEN
        closed = len(facts) - int(is_open.sum())
        self.ends, self.end_keys = Growing(ends[:closed]), Growing(end_keys[:closed])
        next_first = next_first[:closed]
        self.next_first = Growing(torch.where(next_first >= num_steps, OPEN, next_first))
        #: Rows of the open facts of each triple.
        self.open: dict[int, list[int]] = {}
        for row, key in zip(is_open.nonzero().squeeze(1).tolist(), keys[is_open].tolist(), strict=True):
            self.open.setdefault(key, []).append(row)
        #: Number of open facts.
        self.num_open = len(facts) - closed
        # Position in `ends` of the latest interval of each triple.
        self._latest_end = dict(zip(end_keys[:closed].tolist(), range(closed), strict=True))

    def end(self, keys: list[int], step: int) -> None:
        """Ends the open facts of some triples, in ascending order, with the step before ``step``."""
        rows = []
        for key in keys:
            ended = self.open.pop(key)
            rows += ended
            self._latest_end[key] = len(self.ends) + len(rows) - 1
        if not rows:
            return
        index = torch.tensor(rows, device=self.facts.values.device)
        self.facts.values[index, LAST] = step - 1
        self.ends.append(self.facts.values[index])
        self.end_keys.append(self.keys.values[index])
        self.next_first.append(torch.full_like(index, OPEN))
        self.num_open -= len(rows)

    def begin(self, triples: Tensor, keys: Tensor, step: int) -> None:
        """Begins facts at ``step``.

        Args:
            triples: ``[n, 3]`` head, rel, tail of different triples that do not hold, by ascending key.
            keys: ``[n]`` their keys.
            step: The step.
        """
        numbers = keys.tolist()
        for row, key in enumerate(numbers, start=len(self.facts)):
            self.open[key] = [row]
        again = [self._latest_end[key] for key in numbers if key in self._latest_end]
        self.next_first.values[torch.tensor(again, dtype=torch.long, device=triples.device)] = step
        steps = torch.tensor([step, OPEN], device=triples.device).expand(len(triples), 2)
        self.facts.append(torch.cat([triples, steps], dim=1))
        self.keys.append(keys)
        self.num_open += len(numbers)
