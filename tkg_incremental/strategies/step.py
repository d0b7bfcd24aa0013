"""What a term is given to work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Axis
from tkg_incremental.ops.answers import REL, TIME, AnswerIndex, Side
from tkg_incremental.ops.shared import Places, SharedTable
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.sampling.share import WHOLE, Share
from tkg_incremental.strategies.encoding import BatchEncoding, ends_of


@dataclass
class Step:
    """One step of learning.

    Args:
        snapshot: The step's data.
        model: The model that learns.
        previous: The model as it was before the step, frozen.
        negatives: Draws negatives.
        generator: Source of all randomness.
        share: Which part of the batch a term is given; what it draws for its rows goes through it.
        encoding: What the terms of a batch have encoded together.
    """

    snapshot: Snapshot
    model: TKGModel
    previous: TKGModel
    negatives: NegativeSampler
    generator: torch.Generator
    share: Share = WHOLE
    encoding: BatchEncoding | None = None
    _deleted_answers: dict[tuple[Side, int], AnswerIndex] = field(default_factory=dict, repr=False, compare=False)

    @property
    def timeline(self) -> Timeline:
        return self.snapshot.timeline

    @cached_property
    def known_before(self) -> dict[str, tuple[Tensor, Tensor]]:
        """By table, the index of the rows that were known at the step before, and what they were then."""
        known = {}
        for name, axis in self.model.encoder.axes.items():
            index = torch.arange(self.model.encoder.sizes[axis], device=self.model.device)
            index = index[is_known_before(self.snapshot, axis, index)]
            with torch.no_grad():
                known[name] = index, self.previous.encoder.rows(name, index)
        return known

    def forget(self) -> None:
        """Drops what is kept of the previous model, which is another one now."""
        self.__dict__.pop("known_before", None)

    def encode(
        self, model: TKGModel, rows: Tensor, columns: Tensor, time: Tensor, pool: Pool
    ) -> tuple[tuple[Tensor, Tensor], SharedTable, Places]:
        """Vectors of heads and tails, ``2 × [B, d]``, and of those that rows are held against: a table, and where in it
        they stand.

        Args:
            model: The model that learns, or the previous one.
            rows: ``[B, 4]`` of the batch.
            columns: ``[R, K]`` lists of entities, as places in the order of a pool.
            time: ``[R]`` the step of each list.
            pool: That pool.
        """
        if model is self.model and self.encoding is not None and self.encoding.is_worth_it:
            return self.encoding.ends(rows), *self.encoding.drawn(columns, time, pool)
        if not pool.is_everybody:
            table, (drawn,) = model.encode_places([(columns, time)], pool.order, pool.num_encoded)
            return model.encode_ends(rows), table, drawn
        places = [(columns, time), (ends_of(self.timeline, rows), rows[:, TIME])]
        table, (drawn, ends) = model.encode_places(places, pool.order, pool.num_encoded)
        head, tail = table.rows(ends.rows).unbind(1)
        return (head, tail), table, drawn

    def scores(self, rows: Tensor) -> Tensor:
        """Scores of any rows by the model that learns, ``[B, 4] → [B]``."""
        if self.encoding is None or not self.encoding.has(rows):
            return self.model(rows)
        head, tail = self.encoding.ends(rows)
        return self.model.decoder(head, self.model.encoder.relation(rows[:, REL], rows[:, TIME]), tail)

    def deleted_answers(self, side: Side, window: int) -> AnswerIndex:
        """The answers that queries of this step had in the ``window`` steps before, and no longer have."""
        if (side, window) not in self._deleted_answers:
            self._deleted_answers[side, window] = deleted_answers(self.snapshot, side, window)
        return self._deleted_answers[side, window]


def deleted_answers(snapshot: Snapshot, side: Side, window: int) -> AnswerIndex:
    """As for a step of learning."""
    line = snapshot.timeline
    return AnswerIndex(snapshot.deleted(window), side, line.column_of, line.num_relations, line.num_steps)


def is_known_before(snapshot: Snapshot, axis: Axis, index: Tensor) -> Tensor:
    """Whether rows of tables of an axis were known at the step before, ``[n] → [n]``."""
    line, before = snapshot.timeline, max(snapshot.time - 1, 0)
    if axis == "entity":
        return line.column_of[index] < line.num_known[before]
    return index < snapshot.time if axis == "time" else torch.ones_like(index, dtype=torch.bool)
