"""The vectors of a batch: every (entity, time) pair is encoded once, for all terms of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data.timeline import Timeline
from tkg_incremental.loader.batch import Candidates, TermBatch, TKGBatch
from tkg_incremental.loader.pool import CandidatePool
from tkg_incremental.ops.answers import HEAD, REL, SIDES, TAIL, TIME
from tkg_incremental.ops.one_vs_all import Group, one_vs_all_loss
from tkg_incremental.ops.scores import compare
from tkg_incremental.ops.shared import Places, SharedTable

if TYPE_CHECKING:
    from tkg_incremental.models.base import TKGModel

# Rows of one product in one-vs-all losses of static entities: the scores of a block stay in the cache.
_BLOCK_ROWS = 256


def ends_of(quads: Tensor) -> Tensor:
    """Heads and tails, ``[B, 4] → [B, 2]``. By a stride: a list of columns would be copied to the device each time."""
    return quads[:, HEAD : TAIL + 1 : TAIL - HEAD]


class PoolTable:
    """Vectors of the members of a candidate pool at the steps of a batch.

    Args:
        vectors: ``[N, d]``, step after step, members in the order of the pool.
        first: ``[num_steps]`` where the vectors of a step begin.
        pool: The pool.
    """

    def __init__(self, vectors: Tensor, first: Tensor, pool: CandidatePool) -> None:
        self.vectors, self._first, self._pool = SharedTable(vectors), first, pool

    def places(self, entities: Tensor, time: Tensor) -> Places:
        """Rows of entities ``[L, K]`` at steps ``[L]``."""
        return Places(self._pool.position[entities], self._first.index_select(0, time))


class PairTable:
    """Vectors of distinct (entity, time) pairs.

    Args:
        vectors: ``[N, d]``.
        keys: ``[N]`` ascending, ``entity × num_steps + time``.
        num_steps: Number of steps; 1 if entities do not depend on time.
    """

    def __init__(self, vectors: Tensor, keys: Tensor, num_steps: int) -> None:
        self.vectors, self._keys, self._num_steps = SharedTable(vectors), keys, num_steps

    def places(self, entities: Tensor, time: Tensor) -> Places:
        """Rows of entities ``[L, K]`` at steps ``[L]``."""
        return Places(torch.searchsorted(self._keys, pair_keys(entities, time, self._num_steps).contiguous()))


def pair_keys(entities: Tensor, time: Tensor, num_steps: int) -> Tensor:
    """(entity, time) pairs as integers, ``[L, K], [L] → [L, K]``."""
    return entities if num_steps == 1 else entities * num_steps + time[:, None]


class EncodedBatch:
    """A batch with its vectors, which are encoded when the first term needs them.

    Args:
        model: The model.
        batch: The batch.
        timeline: The graph, for one-vs-all losses.
    """

    def __init__(self, model: TKGModel, batch: TKGBatch, timeline: Timeline) -> None:
        self.model, self.batch, self.timeline = model, batch, timeline
        # Terms refer to the vectors and not to this object: a cycle would keep the vectors until the garbage collector
        # runs, and their memory is not what triggers it.
        vectors = BatchVectors(model, batch, timeline)
        #: What each term of the strategy learns from; :obj:`None` for terms without quads in this batch.
        self.terms = [None if term is None else EncodedTerm(vectors, term) for term in batch.terms]


class BatchVectors:
    """The vectors of a batch, encoded when they are first used.

    If the batch scores at least as many candidates as there are pool members at its steps, all of these are encoded;
    otherwise the distinct pairs that occur are.

    Args:
        model: The model.
        batch: The batch.
        timeline: The graph.
    """

    def __init__(self, model: TKGModel, batch: TKGBatch, timeline: Timeline) -> None:
        self.model, self.batch, self.timeline = model, batch, timeline
        self._num_steps = 1 if model.encoder.static_entities else timeline.num_steps

    def ends(self, quads: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of heads and tails, ``[B, 4] → 2 × [B, d]``."""
        table = self._tables[0]
        head, tail = table.vectors.rows(table.places(ends_of(quads), quads[:, TIME]).rows).unbind(1)
        return head, tail

    def candidates(self, candidates: Candidates) -> tuple[SharedTable, Places]:
        """A table of vectors and the rows of each list of candidates."""
        table = self._tables[1 if candidates.from_pool else 0]
        return table.vectors, table.places(candidates.entities, candidates.time)

    @cached_property
    def _tables(self) -> tuple[PoolTable | PairTable, PoolTable | PairTable]:
        """The table of heads and tails, and the table of candidates."""
        pool, model = self.batch.pool, self.model
        steps, sizes = self._pool_sizes()
        drawn = sum(term.candidates.entities.numel() for term in self.batch if term.candidates is not None)
        if not model.encoder.encodes_together or sum(sizes) > drawn + 2 * len(self.batch):
            pairs = self._encode_pairs(self._distinct_pairs(with_pool=True))
            return pairs, pairs
        if pool.has_all or model.is_frozen:
            members = self._pool_table(*model.encode_pool(pool.entities, steps, sizes), steps)
            return members if pool.has_all else self._encode_pairs(self._distinct_pairs(with_pool=False)), members
        # One look-up for the pool and for heads and tails, so that each parameter has a single gradient.
        keys = self._distinct_pairs(with_pool=False)
        listed = pool.entities[: max(sizes)]
        entities, position = torch.unique(torch.cat([listed, keys // self._num_steps]), return_inverse=True)
        member, end = position.split([len(listed), len(keys)])
        others = torch.ones_like(entities, dtype=torch.bool).index_fill_(0, member, False).nonzero().squeeze(1)
        subset = model.encoder.subset(entities)
        ends = PairTable(subset.entity(end, keys % self._num_steps), keys, self._num_steps)
        vectors = subset.encode_known(torch.cat([member, others]), steps, sizes)
        return ends, self._pool_table(vectors, [0, *accumulate(sizes[:-1])], steps)

    def _pool_table(self, vectors: Tensor, begins: list[int], steps: list[int]) -> PoolTable:
        device = self.timeline.device
        first = torch.full((self.timeline.num_steps,), begins[0], device=device)
        if self._num_steps > 1:
            first[torch.tensor(steps, device=device)] = torch.tensor(begins, device=device)
        return PoolTable(vectors, first, self.batch.pool)

    def _pool_sizes(self) -> tuple[list[int], list[int]]:
        """The steps at which the pool would be encoded, and the number of its members to encode at each."""
        pool = self.batch.pool
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

    def _encode_pairs(self, keys: Tensor) -> PairTable:
        vectors = self.model.encoder.entity(keys // self._num_steps, keys % self._num_steps)
        return PairTable(vectors, keys, self._num_steps)


class EncodedTerm:
    """What a term of the loss learns from: the scores of its quads.

    Args:
        vectors: The vectors of the batch.
        term: The quads and candidates of the term.
    """

    def __init__(self, vectors: BatchVectors, term: TermBatch) -> None:
        self._vectors, self._term = vectors, term
        self.quads, self.candidates, self.weight = term.quads, term.candidates, term.weight
        #: Number of quads of the term in the batches of all processes together.
        self.total = len(term.quads) if term.total is None else term.total

    @property
    def model(self) -> TKGModel:
        return self._vectors.model

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Vectors of heads and tails, ``2 × [B, d]``."""
        return self._vectors.ends(self.quads)

    @cached_property
    def relation(self) -> Tensor:
        """Vectors of the relations, ``[B, d]``."""
        return self.model.relation_vectors(self.quads[:, REL], self.quads[:, TIME], "tail")

    @cached_property
    def query(self) -> Tensor:
        """Query vectors for tails, then for heads, ``[2B, d]``."""
        return self.model.both_queries(*self.ends, self.quads, self.relation)

    @cached_property
    def true_scores(self) -> Tensor:
        """Scores of the true tails, then of the true heads, ``[2B]``."""
        head, tail = self.ends
        return compare(self.query, torch.cat([tail, head]), self.model.decoder.similarity)

    def scores(self) -> Tensor:
        """Scores of the quads, ``[B]``."""
        if not self.model.reciprocal:
            head, tail = self.ends
            return self.model.decoder(head, self.relation, tail)
        return self.true_scores.view(2, -1).mean(0)

    def logits(self) -> Tensor:
        """Scores ``[2B, 1 + K]`` of both queries, the true answer first, minus infinity for masked candidates."""
        drawn = self.candidates
        if drawn is None:
            raise RuntimeError("this term has drawn no candidates: its draw() must return some")
        true = self.true_scores  # before the table goes on: its gradient is summed along the way back
        table, places = self._vectors.candidates(drawn)
        if drawn.list_of_query is not None:
            places = places.lists(drawn.list_of_query)
        scores = table.sampled_scores(self.query, places, self.model.decoder.similarity)
        if drawn.mask is not None:
            scores = scores.masked_fill(drawn.mask, -torch.inf)
        return torch.cat([true[:, None], scores], dim=1)

    def one_vs_all_loss(self, scale: float = 1.0) -> Tensor:
        """``scale`` times the cross-entropy against all entities known at each quad's time, summed over both queries of
        all quads."""
        line, quads = self._vectors.timeline, self.quads
        table, first, groups = self._known_table()
        head, tail = table.rows(first[:, None] + line.column_of[ends_of(quads)]).unbind(1)
        self.ends = head, tail
        return self._loss_of_groups(table.vectors, self.true_scores, groups, line.column_of.__getitem__, scale)

    def batch_loss(self, scale: float = 1.0) -> Tensor:
        r"""``scale`` times the cross-entropy against the entities that were drawn for the whole batch, summed over both
        queries of all quads. One of :math:`K` entities drawn from :math:`N` stands for :math:`N / K` of them, so that
        the loss is an estimate of :meth:`one_vs_all_loss`."""
        line, time, drawn = self._vectors.timeline, self.quads[:, TIME], self.candidates
        if drawn is None or not self.model.encoder.static_entities:
            raise ValueError("negatives for a whole batch need a model whose entities do not depend on time")
        true = self.true_scores
        table, places = self._vectors.candidates(drawn)
        entities = drawn.entities[0]
        columns = line.column_of[entities]  # ascending
        limits = torch.searchsorted(columns, line.num_known[time].contiguous())
        groups = [
            Group(
                slice(begin, min(begin + _BLOCK_ROWS, len(time))), 0, len(entities), limits[begin : begin + _BLOCK_ROWS]
            )
            for begin in range(0, len(time), _BLOCK_ROWS)
        ]

        def place_of(answers: Tensor) -> Tensor:
            """Not a table of all entities: the cost of a batch must not grow with the graph."""
            wanted = line.column_of[answers]
            found = torch.searchsorted(columns, wanted).clamp(max=len(columns) - 1)
            return torch.where(columns[found] == wanted, found, -1)

        share = line.num_known[time] / limits.clamp(min=1)
        true = true - share.log().repeat(2)
        return self._loss_of_groups(table.rows(places.rows[0]), true, groups, place_of, scale)

    def _loss_of_groups(
        self,
        vectors: Tensor,
        true: Tensor,
        groups: list[Group],
        place_of: Callable[[Tensor], Tensor],
        scale: float,
    ) -> Tensor:
        """Cross-entropy of both queries against groups of candidates, other true answers left out.

        Args:
            vectors: ``[N, d]`` vectors of candidates.
            true: ``[2B]`` scores of the true answers.
            groups: Quads and their candidates.
            place_of: Places of entities among the candidates of a group, ``[n] → [n]``, -1 for one that is none.
            scale: A factor of the loss.
        """
        masks = []
        for side in SIDES:
            row, entity = self._vectors.timeline.answers(side, "train").expand(self.quads)
            column = place_of(entity)
            if self.candidates is not None:  # not every answer was drawn; all are among the known entities
                among = column >= 0
                row, column = row[among], column[among]
            masks.append((row, column))
        query = self.query.view(2, len(self.quads), -1)
        return one_vs_all_loss(query, vectors, true.view(2, -1), groups, masks, self.model.decoder.similarity, scale)

    def _known_table(self) -> tuple[SharedTable, Tensor, list[Group]]:
        """Vectors of all known entities, where each quad's candidates begin ``[B]``, and quads with their candidates
        in groups of one product each."""
        line, encoder, time = self._vectors.timeline, self.model.encoder, self.quads[:, TIME]
        steps, group, counts = torch.unique_consecutive(time, return_inverse=True, return_counts=True)
        known = line.num_known[steps]
        # Copied to the host together: each copy waits for the device.
        at, widths, sizes = torch.stack([steps, known, counts]).tolist()
        if encoder.static_entities:
            table = SharedTable(encoder.encode_known(line.order, at[-1:], widths[-1:]))
            limits = line.num_known[time] if widths[0] < widths[-1] else None
            blocks = torch.arange(len(time)).split(_BLOCK_ROWS)
            rows = [slice(int(block[0]), int(block[-1]) + 1) for block in blocks]
            groups = [Group(some, 0, widths[-1], None if limits is None else limits[some]) for some in rows]
            return table, torch.zeros_like(time), groups
        table = SharedTable(encoder.encode_known(line.order, at, widths))
        groups = [
            Group(slice(end - size, end), begin - width, width)
            for end, size, begin, width in zip(accumulate(sizes), sizes, accumulate(widths), widths, strict=True)
        ]
        return table, (known.cumsum(0) - known)[group], groups
