"""What the gate measures: the questions of an update, asked before it and after each round of learning."""

from __future__ import annotations

import math

import torch

from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.gate import GateReport, neighbour_overlap, neighbours
from tkg_incremental.live.quads import ChangedFacts, first_of_each, hold, older_facts, some_quads
from tkg_incremental.live.questions import Questions
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import TIME
from tkg_incremental.seeding import make_generator

# Entities whose neighbours are compared before and after, and entities that may be neighbours.
_PROBED, _OTHERS = 100, 2000


class GateQuestions:
    """A sample of older facts and of entities, ranked by the model before the update; then, once :meth:`look_up` knows
    the changes, the facts that still hold, those that were added and those that have ended.

    Args:
        graph: The graph, before the changes are applied.
        model: The model before it learns.
        entities: Number of entities that it has learnt before.
    """

    def __init__(self, graph: ServedGraph, model: TKGModel, entities: int) -> None:
        self._store, self._before, self._static = graph.folder.store, graph.clock, model.static_entities
        self._size, self._seed = graph.gate.sample, graph.settings.seed
        self._sample = older_facts(self._store, self._before, self._size, self._seed)
        ranks = Questions(self._sample, self._store, self._before, self._static).ranks(model)
        self._first_before = ranks.view(2, len(self._sample)) <= 1
        order = torch.randperm(entities, generator=make_generator(self._seed, "drift"))
        self._probes = order[:_PROBED], order[:_OTHERS]
        self._near_before = neighbours(model, *self._probes)

    def look_up(self, changed: ChangedFacts, clock: GraphClock) -> None:
        """Looks up the answers to all questions, with the changes applied.

        Args:
            changed: The changes.
            clock: The time axis after them.
        """
        store, size, seed = self._store, self._size, self._seed
        older = self._sample.clone()
        # Facts of the last step must hold at the new last step, too.
        older[older[:, TIME] == self._before.num_steps - 1, TIME] = clock.num_steps - 1
        holds = hold(older, store, clock)
        self._kept_before = float(self._first_before[:, holds].double().mean()) if bool(holds.any()) else math.nan
        self.older, self._added, self._ended = (
            Questions(quads, store, clock, self._static)
            for quads in (
                older[holds],
                some_quads(first_of_each(changed.added), 2 * size, seed),
                some_quads(changed.ended, size, seed),
            )
        )

    def measure(self, model: TKGModel) -> GateReport:
        """What the model knows now."""
        return GateReport(
            learned=self._added.share_first(model),
            kept=self.older.share_first(model),
            kept_before=self._kept_before,
            outranked=self._ended.share_outranked(model),
            drift=neighbour_overlap(self._near_before, model, *self._probes),
            finite=True,
        )
