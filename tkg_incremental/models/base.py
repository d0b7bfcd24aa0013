"""A model: an encoder, a decoder, and the queries it answers."""

from __future__ import annotations

import copy
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.loader.batch import TKGBatch
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.encoder import Encoder, RowSource
from tkg_incremental.models.encoding import EncodedBatch, ends_of
from tkg_incremental.ops.answers import REL, TIME, Side, query_columns
from tkg_incremental.ops.scores import all_scores, sampled_scores

if TYPE_CHECKING:
    from tkg_incremental.answers import Answer, AnswerEngine, TimelinePoint
    from tkg_incremental.datasets.base import TKGDataset

# Queries with fewer candidates are scored by one thread.
_ENTITIES_PER_THREAD = 10_000


class TKGModel(nn.Module):
    r"""A temporal knowledge graph model :math:`\phi(s, r, o, t) = \mathrm{DEC}(\mathbf{z}^t_s, \mathbf{z}^t_r,
    \mathbf{z}^t_o)`.

    Args:
        encoder: Computes the vectors of entities and relations at a step.
        decoder: Computes the score of three vectors.
        catalog: Names and times, for :meth:`query`.
        reciprocal: Whether the encoder has two rows per relation, ``2r`` and ``2r + 1``, the second for the inverse
            relation. A head query :math:`(?, r, o, t)` is then answered as the tail query :math:`(o, r^{-1}, ?, t)`.
    """

    #: Whether the model is a former state that does not learn.
    is_frozen = False

    def __init__(
        self, encoder: Encoder, decoder: Decoder, catalog: Catalog | None = None, reciprocal: bool = False
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.catalog, self.reciprocal = encoder, decoder, catalog, reciprocal
        #: Arguments of the named models, to construct a saved one again.
        self.options: dict[str, Any] = {}
        self._answers: tuple[Catalog | None, AnswerEngine] | None = None

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def frozen_copy(self) -> FrozenModel:
        """A copy that does not learn."""
        parts = copy.deepcopy(self.encoder), copy.deepcopy(self.decoder)
        return FrozenModel(*parts, self.catalog, self.reciprocal).requires_grad_(False).eval()

    def frozen_view(self, former: RowSource) -> FrozenModel:
        """The model with the rows that ``former`` provides: like a frozen copy, without the copy."""
        return FrozenModel(self.encoder.with_rows_of(former), self.decoder, self.catalog, self.reciprocal)

    # Training ------------------------------------------------------------------------------------------

    def encode(self, batch: TKGBatch, timeline: Timeline) -> EncodedBatch:
        """The vectors of all entities of a batch, each (entity, time) pair once."""
        return EncodedBatch(self, batch, timeline)

    def encode_pool(self, entities: Tensor, steps: list[int], sizes: list[int]) -> tuple[Tensor, list[int]]:
        """Vectors of the first ``sizes[i]`` entities at ``steps[i]``, and where each step begins among them."""
        return self.encoder.encode_known(entities, steps, sizes), [0, *accumulate(sizes[:-1])]

    def relation_rows(self, rel: Tensor, side: Side) -> Tensor:
        """Rows of the encoder's relation tables for queries of one side, ``[*] → [*]``."""
        return 2 * rel + (side == "head") if self.reciprocal else rel

    def relation_vectors(self, rel: Tensor, time: Tensor, side: Side) -> Tensor:
        """Vectors of relations for queries of one side, ``[*] → [*, d]``."""
        return self.encoder.relation(self.relation_rows(rel, side), time)

    def query_of(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        """Query vectors from the vectors of given entities and of relations, ``2 × [*, d] → [*, d]``."""
        return self.decoder.query(given, rel, "tail" if self.reciprocal else side)

    def both_queries(self, head: Tensor, tail: Tensor, quads: Tensor, rel: Tensor) -> Tensor:
        """Query vectors for tails, then for heads, ``[2B, d]``.

        Args:
            head: ``[B, d]`` vectors of heads.
            tail: ``[B, d]`` vectors of tails.
            quads: ``[B, 4]``.
            rel: ``[B, d]`` vectors of the relations for tail queries.
        """
        inverse = self.relation_vectors(quads[:, REL], quads[:, TIME], "head") if self.reciprocal else rel
        return torch.cat([self.query_of(head, rel, "tail"), self.query_of(tail, inverse, "head")])

    # Scores --------------------------------------------------------------------------------------------

    def forward(self, quads: Tensor) -> Tensor:
        """Scores of quads, ``[B, 4] → [B]``: with reciprocal relations the mean of both directions."""
        head, tail = self.encoder.entity(ends_of(quads), quads[:, TIME, None]).unbind(1)
        time, rel = quads[:, TIME], quads[:, REL]
        score = self.decoder(head, self.relation_vectors(rel, time, "tail"), tail)
        if not self.reciprocal:
            return score
        return (score + self.decoder(tail, self.relation_vectors(rel, time, "head"), head)) / 2

    def query_vectors(self, quads: Tensor, side: Side) -> Tensor:
        """Query vectors for ``side`` of each quad, ``[B, 4] → [B, d]``."""
        given, _ = query_columns(side)
        time = quads[:, TIME]
        entity = self.encoder.entity(quads[:, given], time)
        return self.query_of(entity, self.relation_vectors(quads[:, REL], time, side), side)

    def candidate_vectors(self, entities: Tensor, time: int) -> Tensor:
        """Vectors of entities at one step, ``[n] → [n, d]``."""
        return self.encoder.encode_known(entities, [time], [len(entities)])

    def score_all(self, quads: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Every query against the same candidate vectors, ``[B, 4] × [n, d] → [B, n]``."""
        return all_scores(self.query_vectors(quads, side), candidates, self.decoder.similarity)

    @torch.no_grad()
    def score_entities(self, quad: Tensor, side: Side, entities: Tensor) -> Tensor:
        """One query against some entities, ``[1, 4] × [n] → [n]``. Vectors that are rows of a table are not copied."""
        table = self.encoder.vectors_by_entity
        if table is None:
            return self.score_all(quad, side, self.candidate_vectors(entities, int(quad[0, TIME]))).squeeze(0)
        # A part for each thread, of equal sizes.
        parts = torch.get_num_threads() if len(entities) >= _ENTITIES_PER_THREAD else 1
        padding = entities[-1:].expand(-len(entities) % parts)
        index = torch.cat([entities, padding]).view(parts, -1)
        query = self.query_vectors(quad, side).expand(parts, -1).contiguous()
        return sampled_scores(query, table, index, self.decoder.similarity).flatten()[: len(entities)]

    def expand(
        self,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> TKGModel:
        """Makes room for new entities, relations or steps; existing rows keep their values."""
        if num_relations is not None and self.reciprocal:
            num_relations *= 2
        self.encoder.expand(num_entities, num_relations, num_steps, generator)
        return self

    # Answers -------------------------------------------------------------------------------------------

    @property
    def answers(self) -> AnswerEngine:
        """Answers questions by name."""
        from tkg_incremental.answers import AnswerEngine  # imports this module

        if self._answers is None or self._answers[0] is not self.catalog:
            self._answers = self.catalog, AnswerEngine.from_catalog(self)
        return self._answers[1]

    def query(
        self,
        head: str | int | None = None,
        rel: str | int | None = None,
        tail: str | int | None = None,
        time: Any = None,
        k: int = 10,
        any_type: bool = False,
    ) -> list[Answer]:
        """The ``k`` best answers to a question with exactly one of ``head``, ``rel`` and ``tail`` left out, known facts
        first.

        Args:
            head: Name or id, or :obj:`None` if it is asked for.
            rel: Name or id, or :obj:`None` if it is asked for.
            tail: Name or id, or :obj:`None` if it is asked for.
            time: A year or date; an integer on an axis of plain indices. A time after the last step that the model
                learnt is answered as of that step, with a warning.
            k: Number of answers.
            any_type: Rank all entities, not only those that were on that side of the relation in some train fact.
        """
        return self.answers.query(head, rel, tail, time, k, any_type)

    def check(self, head: str | int, rel: str | int, tail: str | int, time: Any) -> Answer:
        """The probability that a fact holds at a time."""
        return self.answers.check(head, rel, tail, time)

    def timeline(self, head: str | int, rel: str | int, tail: str | int) -> list[TimelinePoint]:
        """The probability of a fact at every step."""
        return self.answers.timeline(head, rel, tail)

    @classmethod
    def from_dataset(cls, dataset: TKGDataset, hidden_channels: int = 128, **kwargs: object) -> TKGModel:
        """A new model of the dataset's size that knows its names."""
        model = cls(dataset.num_entities, dataset.num_relations, dataset.num_steps, hidden_channels, **kwargs)  # type: ignore[arg-type]
        model.catalog = Catalog.from_dataset(dataset)
        return model


class FrozenModel(TKGModel):
    """A model that does not change, so that the vectors of a pool are computed once per step."""

    is_frozen = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._encoded: Tensor | None = None
        self._first: dict[tuple[int, int], int] = {}

    def encode_pool(self, entities: Tensor, steps: list[int], sizes: list[int]) -> tuple[Tensor, list[int]]:
        wanted = list(zip(steps, sizes, strict=True))
        new = [each for each in wanted if each not in self._first]
        if new:
            table, first = super().encode_pool(entities, *map(list, zip(*new, strict=True)))
            begin = 0 if self._encoded is None else len(self._encoded)
            self._first |= {each: begin + start for each, start in zip(new, first, strict=True)}
            self._encoded = table if self._encoded is None else torch.cat([self._encoded, table])
        assert self._encoded is not None
        return self._encoded, [self._first[each] for each in wanted]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._encoded, self._first = None, {}
        return super().load_state_dict(*args, **kwargs)
