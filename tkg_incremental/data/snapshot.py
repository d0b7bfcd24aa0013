"""One step of a temporal knowledge graph, and what changed since the steps before."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from tkg_incremental.data.timeline import Timeline


class Snapshot(Data):
    """The graph at one step: a :class:`torch_geometric.data.Data` of its train facts, plus views.

    The views compare train rows (each counted once) with those of the steps before; all are
    ``LongTensor [n, 4]``: head, rel, tail, time.

    Args:
        timeline: The graph over time.
        time: Index of the step.
    """

    def __init__(self, timeline: Timeline | None = None, time: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Kept out of Data's attribute store: the timeline is shared, not a part of this step to be
        # collated or moved.
        self.__dict__["timeline"] = timeline
        self.__dict__["_time"] = time
        if timeline is not None:
            rows = timeline.observed.at(time)
            # Views of the timeline's rows, heads and tails: a step costs what changed, not a copy of what holds.
            self.edge_index = rows[:, ::2].t()
            self.edge_type = rows[:, 1]
            self.num_nodes = timeline.num_entities

    @property
    def time(self) -> int:
        """Index of the step."""
        return self.__dict__["_time"]

    @property
    def label(self) -> str:
        """What the step stands for, e.g. ``"1997"`` or ``"1998–1999"``."""
        return self.timeline.labels[self.time]

    @property
    def train(self) -> Tensor:
        """Train rows as published, repeated rows included."""
        return self.timeline.train.at(self.time)

    @property
    def val(self) -> Tensor:
        """Validation rows."""
        return self.timeline.val.at(self.time)

    @property
    def test(self) -> Tensor:
        """Test rows."""
        return self.timeline.test.at(self.time)

    @property
    def current(self) -> Tensor:
        """Train rows, each once."""
        return self.timeline.observed.at(self.time)

    @property
    def added(self) -> Tensor:
        """Train rows that did not hold at the step before."""
        return self.timeline.observed.added(self.time)

    @property
    def removed(self) -> Tensor:
        """Train rows of the step before that no longer hold; their time is the step before."""
        return self.timeline.observed.removed(self.time)

    def deleted(self, window: int = 10) -> Tensor:
        """Facts true in the ``window`` steps before and not now, as rows of this step."""
        return self.timeline.observed.lapsed(self.time, _at_least_one(window))

    def replay(self, window: int = 10) -> Tensor:
        r"""The buffer :math:`B^t`: every train row of the ``window`` steps before."""
        return self.timeline.observed.between(self.time - _at_least_one(window), self.time - 1)

    def turns(self, window: int = 10) -> Tensor:
        """Facts of the ``window`` steps before as they began and as they were last seen: when answers changed, in few
        rows."""
        return self.timeline.observed.turns(self.time - _at_least_one(window), self.time - 1)

    @property
    def known_entities(self) -> Tensor:
        """Entities with a row of any split up to this step, by first appearance."""
        return self.timeline.known_entities(self.time)

    def __repr__(self) -> str:
        return (
            f"Snapshot(time={self.time}, label={self.label!r}, train={len(self.train)}, val={len(self.val)}, "
            f"test={len(self.test)}, added={len(self.added)}, removed={len(self.removed)})"
        )


def _at_least_one(window: int) -> int:
    if window < 1:
        raise ValueError(f"window must be at least 1 (got {window})")
    return window
