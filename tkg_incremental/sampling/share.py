"""Which part of a batch is drawn for: all of it, or the stretch that one of several processes learns."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Draw = Callable[[int], Tensor]


class Share:
    """A whole batch: what is drawn for its rows is drawn for all of them."""

    def by_row(self, rows: int, draw: Draw) -> Tensor:
        """What ``draw(n)`` gives for ``n`` rows, of which ``rows`` are this share's."""
        return draw(rows)

    def by_step(self, steps: Tensor, draw: Draw) -> Tensor:
        """What ``draw(n)`` gives for the ``n`` distinct steps of the rows, of which ``steps`` are this share's."""
        return draw(len(steps))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Stretch(Share):
    """A stretch of a batch.

    Every process draws for the whole batch, from a generator that all of them have in the same state, and keeps what
    belongs to its own rows: a row meets the same negatives however many processes there are.

    Args:
        time: ``[B]`` the steps of all rows of the batch, ascending.
        begin: First row of the stretch.
        end: The row after its last.
    """

    def __init__(self, time: Tensor, begin: int, end: int) -> None:
        self.time, self.begin, self.end = time, begin, end

    def by_row(self, rows: int, draw: Draw) -> Tensor:
        if rows != self.end - self.begin:
            raise ValueError(f"rows must be those of the stretch, {self.end - self.begin} (got {rows})")
        return draw(len(self.time))[self.begin : self.end]

    def by_step(self, steps: Tensor, draw: Draw) -> Tensor:
        everywhere = torch.unique_consecutive(self.time)
        return draw(len(everywhere))[torch.searchsorted(everywhere, steps)]

    def __repr__(self) -> str:
        return f"Stretch({self.begin}–{self.end} of {len(self.time)})"


#: The share of a process that is alone.
WHOLE = Share()
