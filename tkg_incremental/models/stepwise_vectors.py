"""The vectors of a batch, computed step after step by the kernels in C."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.loader.batch import Candidates, TKGBatch
from tkg_incremental.ops import native
from tkg_incremental.ops.answers import HEAD, TAIL, TIME
from tkg_incremental.ops.scores import KINDS, Similarity
from tkg_incremental.ops.stepwise import StepTables

if TYPE_CHECKING:
    from tkg_incremental.models.base import TKGModel


class StepwiseVectors:
    """Vectors and scores of a batch whose entities have :meth:`~tkg_incremental.models.Encoder.step_tables`.

    Args:
        model: The model.
        batch: The batch.
        timeline: The graph.
    """

    def __init__(self, model: TKGModel, batch: TKGBatch, timeline: Timeline) -> None:
        self._model, self._batch, self._timeline = model, batch, timeline

    @staticmethod
    def can_encode(model: TKGModel) -> bool:
        """Whether the kernels can do the work for a model."""
        return (
            bool(model.formula_tables)
            and model.encodes_together
            and model.decoder.similarity in KINDS
            and native.takes(*map(model.get_parameter, model.formula_tables))
        )

    def ends(self, quads: Tensor) -> Tensor:
        """Vectors of heads and tails, ``[B, 4] → [B, 2, d]``."""
        ends, numbers = quads[:, HEAD : TAIL + 1 : TAIL - HEAD], self.numbers(quads[:, TIME])
        rows = self.rows(ends.reshape(-1))
        return self.tables.vectors(rows, numbers.repeat_interleave(2)).view(len(quads), 2, -1)

    def scores(self, query: Tensor, drawn: Candidates, similarity: Similarity) -> Tensor:
        """Scores of candidates, ``[2B, d] → [2B, K]``."""
        index, numbers = self.rows(drawn.entities), self.numbers(drawn.time)
        return self.tables.sampled_scores(query, index, numbers, similarity, drawn.list_of_query)

    def numbers(self, time: Tensor) -> Tensor:
        """Numbers of steps among the steps of the batch, ``[n] → [n]``."""
        return torch.searchsorted(self._steps, time.contiguous())

    def rows(self, entities: Tensor) -> Tensor:
        """Rows of entities in the tables, ``[*] → [*]``."""
        return entities if self._row_of is None else self._row_of[entities]

    @property
    def has_whole_tables(self) -> bool:
        """Whether every entity has a row."""
        return self._row_of is None

    @cached_property
    def _steps(self) -> Tensor:
        """``[S]`` the steps of the batch, ascending."""
        times = [term.quads[:, TIME] for term in self._batch]
        times += [term.candidates.time for term in self._batch if term.candidates is not None]
        return torch.unique(torch.cat(times))

    @cached_property
    def _entities(self) -> Tensor | None:
        """``[n]`` the entities whose rows are looked up, ascending; :obj:`None` if the kernels use the whole tables."""
        pool, model = self._batch.sampler, self._model
        known = pool.entities[: int(pool.num_known[self._steps].max())]
        if pool.has_all and model.uses_whole_tables(pool.entities, [len(known)]):
            return None
        ids = [term.quads[:, HEAD : TAIL + 1 : TAIL - HEAD].flatten() for term in self._batch]
        lists = [term.candidates for term in self._batch if term.candidates is not None]
        drawn = [each.entities.flatten() for each in lists if each.from_pool]
        # Members of the pool are distinct: many draws from it would have to be sorted.
        ids += [known] if sum(map(len, drawn)) > len(known) else drawn
        return torch.unique(torch.cat([*ids, *(each.entities.flatten() for each in lists if not each.from_pool)]))

    @cached_property
    def _row_of(self) -> Tensor | None:
        if self._entities is None:
            return None
        # Only what is read is written: on a large graph most of it is not.
        row_of = torch.empty(self._timeline.num_entities, dtype=torch.long)
        row_of[self._entities] = torch.arange(len(self._entities))
        return row_of

    @cached_property
    def tables(self) -> StepTables:
        """The tables with the formula of the batch's steps."""
        model, entities = self._model, self._entities
        names = model.formula_tables
        tables = [model.get_parameter(name) if entities is None else model.rows(name, entities) for name in names]
        return model.step_tables(self._steps, tables)
