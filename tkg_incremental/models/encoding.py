"""Encoded batches: the scores that the terms of a loss learn from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.loader.batch import TermBatch
from tkg_incremental.loader.negatives import NegativeSampler
from tkg_incremental.models.batch_vectors import BatchVectors, ends_of
from tkg_incremental.ops.answers import REL, SIDES, TIME
from tkg_incremental.ops.keys import find
from tkg_incremental.ops.one_vs_all import Group, one_vs_all_loss
from tkg_incremental.ops.rows import with_rows
from tkg_incremental.ops.scores import compare

if TYPE_CHECKING:
    from tkg_incremental.models.base import TKGModel

# Rows of one product in one-vs-all losses of static entities: the scores of a block stay in the cache.
_BLOCK_ROWS = 256


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

    @property
    def sampler(self) -> NegativeSampler:
        """Drew the candidates."""
        return self._vectors.batch.sampler

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Vectors of heads and tails, ``2 × [B, d]``."""
        return self._vectors.ends(self.quads)

    @cached_property
    def relation(self) -> Tensor:
        """Vectors of the relations, ``[B, d]``."""
        return self.model.encode_relation(self.quads[:, REL], self.quads[:, TIME], "tail")

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
        scores = self._vectors.scores(self.query, drawn, self.model.decoder.similarity)
        if drawn.mask is not None:
            scores = scores.masked_fill(drawn.mask, -torch.inf)
        return torch.cat([true[:, None], scores], dim=1)

    def one_vs_all_loss(self, scale: float = 1.0) -> Tensor:
        """``scale`` times the cross-entropy against all entities known at each quad's time, summed over both queries of
        all quads."""
        line, quads, stepwise = self._vectors.timeline, self.quads, self._vectors.stepwise
        # The kernel computes in single precision: products in 16 bits, unlike distances, are those of torch.
        in_16_bits = torch.is_autocast_enabled("cpu") and self.model.decoder.similarity == "dot"
        if stepwise is not None and stepwise.has_whole_tables and not in_16_bits:
            true = self.true_scores.view(2, -1)  # before the tables go on
            steps, counts = torch.unique_consecutive(quads[:, TIME], return_counts=True)
            columns = stepwise.numbers(steps), counts.cumsum(0) - counts, counts, line.num_known[steps]
            given = line.order, torch.stack(columns, 1), self._masks(line.column_of.__getitem__)
            query, similarity = self.query.view(2, len(quads), -1), self.model.decoder.similarity
            return stepwise.tables.one_vs_all_loss(query, true, *given, similarity, scale)
        table, first, groups, limits = self._known_table()
        table, ends = with_rows(table, first[:, None] + line.column_of[ends_of(quads)])
        head, tail = ends.unbind(1)
        self.ends = head, tail
        place_of = line.column_of.__getitem__
        return self._loss_of_groups(table, self.true_scores, groups, place_of, scale, limits)

    def batch_loss(self, scale: float = 1.0) -> Tensor:
        r"""``scale`` times the cross-entropy against the entities that were drawn for the whole batch, summed over both
        queries of all quads. One of :math:`K` entities drawn from :math:`N` stands for :math:`N / K` of them, so that
        the loss is an estimate of :meth:`one_vs_all_loss`."""
        line, time, drawn = self._vectors.timeline, self.quads[:, TIME], self.candidates
        if drawn is None or not self.model.static_entities:
            raise ValueError("negatives for a whole batch need a model whose entities do not depend on time")
        true = self.true_scores
        entities = drawn.entities[0]
        if not len(entities):  # no member of the pool is known yet
            return true.sum() * 0.0
        columns = line.column_of[entities]  # ascending
        limits = torch.searchsorted(columns, line.num_known[time].contiguous())
        groups = _blocks(len(time), len(entities))

        def place_of(answers: Tensor) -> Tensor:
            """Not a table of all entities: the cost of a batch must not grow with the graph."""
            place, was_drawn = find(columns, line.column_of[answers])
            return torch.where(was_drawn, place, -1)

        share = line.num_known[time] / limits.clamp(min=1)
        true = true - share.log().repeat(2)
        vectors = self._vectors.candidates(drawn).squeeze(0)
        return self._loss_of_groups(vectors, true, groups, place_of, scale, limits)

    def _loss_of_groups(
        self,
        vectors: Tensor,
        true: Tensor,
        groups: list[Group],
        place_of: Callable[[Tensor], Tensor],
        scale: float,
        limits: Tensor | None,
    ) -> Tensor:
        """Cross-entropy of both queries against groups of candidates, other true answers left out.

        Args:
            vectors: ``[N, d]`` vectors of candidates.
            true: ``[2B]`` scores of the true answers.
            groups: Quads and their candidates.
            place_of: Places of entities among the candidates of a group, ``[n] → [n]``, -1 for one that is none.
            scale: A factor of the loss.
            limits: ``[B]`` number of candidates of each quad, if some have fewer than their group.
        """
        query = self.query.view(2, len(self.quads), -1)
        masks, similarity = self._masks(place_of), self.model.decoder.similarity
        return one_vs_all_loss(query, vectors, true.view(2, -1), groups, masks, similarity, scale, limits)

    def _masks(self, place_of: Callable[[Tensor], Tensor]) -> list[tuple[Tensor, Tensor]]:
        """For each side, (quad, place) pairs of the true answers among the candidates, by ascending quad."""
        masks = []
        for side in SIDES:
            row, entity = self._vectors.timeline.answers(side, "train").expand(self.quads)
            column = place_of(entity)
            if self.candidates is not None:  # not every answer was drawn; all are among the known entities
                among = column >= 0
                row, column = row[among], column[among]
            masks.append((row, column))
        return masks

    def _known_table(self) -> tuple[Tensor, Tensor, list[Group], Tensor | None]:
        """Vectors of all known entities, where each quad's candidates begin ``[B]``, quads with their candidates in
        groups of one product each, and the number of candidates of each quad if it differs within groups."""
        line, model, time = self._vectors.timeline, self.model, self.quads[:, TIME]
        steps, group, counts = torch.unique_consecutive(time, return_inverse=True, return_counts=True)
        known = line.num_known[steps]
        # Copied to the host together: each copy waits for the device.
        at, widths, sizes = torch.stack([steps, known, counts]).tolist()
        if model.static_entities:
            table = model.encode_known(line.order, at[-1:], widths[-1:])
            limits = line.num_known[time] if widths[0] < widths[-1] else None
            return table, torch.zeros_like(time), _blocks(len(time), widths[-1]), limits
        table = model.encode_known(line.order, at, widths)
        groups = [
            (end - size, size, begin - width, width)
            for end, size, begin, width in zip(accumulate(sizes), sizes, accumulate(widths), widths, strict=True)
        ]
        return table, (known.cumsum(0) - known)[group], groups, None


def _blocks(quads: int, candidates: int) -> list[Group]:
    """Quads that all have the same candidates, in blocks whose scores stay in the cache."""
    return [(first, min(_BLOCK_ROWS, quads - first), 0, candidates) for first in range(0, quads, _BLOCK_ROWS)]
