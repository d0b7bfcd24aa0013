"""The vectors of a batch: every (entity, time) pair is encoded once, for all terms of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.loader.batch import Candidates, TKGBatch
from tkg_incremental.ops import native
from tkg_incremental.ops.answers import HEAD, TAIL, TIME
from tkg_incremental.ops.rows import with_rows
from tkg_incremental.ops.scores import KINDS, Similarity, with_sampled_scores
from tkg_incremental.ops.stepwise import StepTables

if TYPE_CHECKING:
    from tkg_incremental.models.base import TKGModel

# A table of vectors, and what finds the rows of entities ``[L, K]`` at steps ``[L]`` in it. (It must not refer to
# BatchVectors: a cycle would keep the vectors until the garbage collector runs.)
Table = tuple[Tensor, Callable[[Tensor, Tensor], Tensor]]


def ends_of(quads: Tensor) -> Tensor:
    """Heads and tails, ``[B, 4] → [B, 2]``. By a stride: a list of columns would be copied to the device each time."""
    return quads[:, HEAD : TAIL + 1 : TAIL - HEAD]


def pair_keys(entities: Tensor, time: Tensor, num_steps: int) -> Tensor:
    """(entity, time) pairs as integers, ``[L, K], [L] → [L, K]``."""
    return entities if num_steps == 1 else entities * num_steps + time[:, None]


def table_of_pairs(vectors: Tensor, keys: Tensor, num_steps: int) -> Table:
    """The table of distinct pairs with ascending :func:`pair_keys` ``[N]``."""
    return vectors, lambda entities, time: torch.searchsorted(keys, pair_keys(entities, time, num_steps).contiguous())


def table_of_pool(vectors: Tensor, first: Tensor, position: Tensor) -> Table:
    """The table of the members of a candidate pool, in its order, step after step: those of step ``t`` begin at
    ``first[t]``, and each entity has its ``position`` among them."""
    return vectors, lambda entities, time: position[entities] + first.index_select(0, time)[:, None]


class BatchVectors:
    """The vectors of a batch, encoded when they are first used.

    Three ways give the same vectors. With kernels in C for the model, they are computed step after step. Otherwise, if
    the batch scores at least as many candidates as there are pool members at its steps, all of these are encoded; else
    the distinct pairs that occur are.

    Args:
        model: The model.
        batch: The batch.
        timeline: The graph.
    """

    def __init__(self, model: TKGModel, batch: TKGBatch, timeline: Timeline) -> None:
        self.model, self.batch, self.timeline = model, batch, timeline
        self._num_steps = 1 if model.static_entities else timeline.num_steps

    @cached_property
    def stepwise(self) -> StepwiseVectors | None:
        """The vectors step after step, if that is the way."""
        if not StepwiseVectors.can_encode(self.model) or (self.model.is_frozen and self._uses_pool):
            return None  # a frozen model keeps the vectors of the pool
        return StepwiseVectors(self.model, self.batch, self.timeline)

    def ends(self, quads: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of heads and tails, ``[B, 4] → 2 × [B, d]``."""
        if self.stepwise is not None:
            head, tail = self.stepwise.ends(quads).unbind(1)
            return head, tail
        head, tail = self._rows(0, ends_of(quads), quads[:, TIME]).unbind(1)
        return head, tail

    def scores(self, query: Tensor, candidates: Candidates, similarity: Similarity) -> Tensor:
        """Scores of candidates, ``[2B, d] → [2B, K]``."""
        if self.stepwise is not None:
            return self.stepwise.scores(query, candidates, similarity)
        number = -1 if candidates.from_pool else 0
        vectors, find = self._tables[number]
        rows = find(candidates.entities, candidates.time)
        if candidates.list_of_query is not None:
            rows = rows.index_select(0, candidates.list_of_query)
        vectors, scores = with_sampled_scores(vectors, query, rows, similarity)
        self._tables[number] = vectors, find
        return scores

    def candidates(self, candidates: Candidates) -> Tensor:
        """Vectors of each list of candidates, ``[L, K, d]``."""
        return self._rows(-1 if candidates.from_pool else 0, candidates.entities, candidates.time)

    def _rows(self, number: int, entities: Tensor, time: Tensor) -> Tensor:
        """Vectors of entities ``[L, K]`` at steps ``[L]`` from one of the tables, which is handed on to its next use
        (:func:`~tkg_incremental.ops.autograd.hand_on`)."""
        vectors, find = self._tables[number]
        vectors, rows = with_rows(vectors, find(entities, time))
        self._tables[number] = vectors, find
        return rows

    @cached_property
    def _uses_pool(self) -> bool:
        """Whether the members of the pool are encoded at all steps of the batch."""
        drawn = sum(term.candidates.entities.numel() for term in self.batch if term.candidates is not None)
        return self.model.encodes_together and sum(self._pool_sizes[1]) <= drawn + 2 * len(self.batch)

    @cached_property
    def _tables(self) -> list[Table]:
        """The table of the pool, last; before it that of all others, if the pool has a table of its own."""
        pool, model = self.batch.sampler, self.model
        steps, sizes = self._pool_sizes
        if not self._uses_pool:
            return [self._encode_pairs(self._distinct_pairs(with_pool=True))]
        if pool.has_all or model.is_frozen:
            members = self._pool_table(*model.encode_pool(pool.entities, steps, sizes), steps)
            return [members] if pool.has_all else [self._encode_pairs(self._distinct_pairs(with_pool=False)), members]
        # One look-up for the pool and for heads and tails, so that each parameter has a single gradient.
        keys = self._distinct_pairs(with_pool=False)
        listed = pool.entities[: max(sizes)]
        entities, position = torch.unique(torch.cat([listed, keys // self._num_steps]), return_inverse=True)
        member, end = position.split([len(listed), len(keys)])
        others = torch.ones_like(entities, dtype=torch.bool).index_fill_(0, member, False).nonzero().squeeze(1)
        subset = model.subset(entities)
        ends = table_of_pairs(subset.entity(end, keys % self._num_steps), keys, self._num_steps)
        vectors = subset.encode_known(torch.cat([member, others]), steps, sizes)
        return [ends, self._pool_table(vectors, [0, *accumulate(sizes[:-1])], steps)]

    def _pool_table(self, vectors: Tensor, begins: list[int], steps: list[int]) -> Table:
        """The table of the pool's members, in its order, step after step from ``begins`` on."""
        device = self.timeline.device
        first = torch.full((self.timeline.num_steps,), begins[0], device=device)
        if self._num_steps > 1:
            first[torch.tensor(steps, device=device)] = torch.tensor(begins, device=device)
        return table_of_pool(vectors, first, self.batch.sampler.position)

    @cached_property
    def _pool_sizes(self) -> tuple[list[int], list[int]]:
        """The steps at which the pool would be encoded, and the number of its members to encode at each."""
        pool = self.batch.sampler
        steps = torch.unique(torch.cat([term.quads[:, TIME] for term in self.batch]))
        needed = pool.num_known.clamp(min=1)
        if pool.has_all:
            # Heads, tails and candidates that were not drawn may be entities that are not known at their step.
            for entities, time in self._not_drawn():
                last = pool.position[entities].amax(1) + 1
                needed = needed.scatter_reduce(0, time, last, "amax")
        at, sizes = torch.stack([steps, needed[steps]]).tolist()
        return (at[-1:], [max(sizes)]) if self._num_steps == 1 else (at, sizes)

    def _distinct_pairs(self, with_pool: bool) -> Tensor:
        """Keys of the pairs of heads, tails and candidates; those drawn from the pool only if wanted."""
        pairs = list(self._not_drawn())
        if with_pool:
            drawn = [term.candidates for term in self.batch if term.candidates is not None]
            pairs += [(candidates.entities, candidates.time) for candidates in drawn if candidates.from_pool]
        return torch.unique(torch.cat([pair_keys(*each, self._num_steps).flatten() for each in pairs]))

    def _not_drawn(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Entities ``[L, K]`` and steps ``[L]`` of heads, tails and candidates that are not from the pool."""
        for term in self.batch:
            yield ends_of(term.quads), term.quads[:, TIME]
            if term.candidates is not None and not term.candidates.from_pool:
                yield term.candidates.entities, term.candidates.time

    def _encode_pairs(self, keys: Tensor) -> Table:
        vectors = self.model.entity(keys // self._num_steps, keys % self._num_steps)
        return table_of_pairs(vectors, keys, self._num_steps)


class StepwiseVectors:
    """Vectors and scores of a batch, computed step after step by the kernels in C, for models with
    :meth:`~tkg_incremental.models.Encoder.step_tables`.

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
        numbers, rows = self.numbers(quads[:, TIME]), self.rows(ends_of(quads).reshape(-1))
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
        ids = [ends_of(term.quads).flatten() for term in self._batch]
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
