"""A model: an encoder, a decoder, and the queries it answers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.loader.batch import TKGBatch
from tkg_incremental.models.batch_vectors import BatchVectors, ends_of
from tkg_incremental.models.decoders import Decoder
from tkg_incremental.models.encoder import Encoder, RowSource
from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.ops.answers import REL, TIME, Side, query_columns
from tkg_incremental.ops.ranking import RankedAnswers, count_in_parts
from tkg_incremental.ops.scores import all_scores, sampled_scores

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's from Python 3.11 on

    from tkg_incremental.answers import Answer, AnswerEngine, TimelinePoint
    from tkg_incremental.communicator import Communicator
    from tkg_incremental.datasets.base import TKGDataset

# Queries with fewer candidates are scored by one thread.
_ENTITIES_PER_THREAD = 10_000
# Arguments of a constructor that are no options.
_NOT_OPTIONS = frozenset({"num_entities", "num_relations", "num_steps", "seed"})


class TKGModel(Encoder):
    r"""Base class of temporal knowledge graph models, :math:`\phi(s, r, o, t) = \mathrm{DEC}(\mathbf{z}^t_s,
    \mathbf{z}^t_r, \mathbf{z}^t_o)`.

    A model is an encoder with a decoder. The constructor of a subclass registers tables with :meth:`add_table` and ends
    with :meth:`reset_parameters`; its arguments, apart from sizes and ``seed``, are saved with the model. It implements
    :meth:`entity` or :meth:`relation`, or both: without them, vectors are the rows of the tables ``entity_vectors`` and
    ``relation_vectors``, which do not depend on time.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: Computes the score of three vectors.
        reciprocal: Whether relation tables have two rows per relation, ``2r`` and ``2r + 1``, the second for the
            inverse relation. A head query :math:`(?, r, o, t)` is then answered as the tail query :math:`(o, r^{-1}, ?,
            t)`.
    """

    #: Whether the model is a former state that does not learn.
    is_frozen = False
    #: Arguments of the constructor, to construct a saved model again.
    options: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = _recording_options(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int,
        decoder: Decoder,
        reciprocal: bool = False,
    ) -> None:
        super().__init__(num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        if decoder.reads_halves and (hidden_channels < 2 or hidden_channels % 2):
            raise ValueError(f"hidden_channels must be even and at least 2 with {decoder.name} (got {hidden_channels})")
        self.decoder, self.reciprocal = decoder, reciprocal
        self.__dict__.setdefault("options", {})
        #: Names and times, for :meth:`query`.
        self.catalog: Catalog | None = None
        self._answers: tuple[Catalog | None, AnswerEngine] | None = None
        self._pools: tuple[list[Tensor], dict[tuple[int, int], int]] = [], {}

    @classmethod
    def from_dataset(cls, dataset: TKGDataset, hidden_channels: int = 128, **kwargs: object) -> Self:
        """A new model of the dataset's size, with its names."""
        model = cls(dataset.num_entities, dataset.num_relations, dataset.num_steps, hidden_channels, **kwargs)  # type: ignore[arg-type]
        model.catalog = Catalog.from_dataset(dataset)
        return model

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    # Training ------------------------------------------------------------------------------------------

    def encode(self, batch: TKGBatch, timeline: Timeline) -> list[EncodedTerm | None]:
        """What each term of a strategy learns from; :obj:`None` for terms without quads in the batch. Every (entity,
        time) pair is encoded once for all terms, when the first one needs it.

        Args:
            batch: The batch.
            timeline: The graph, for losses against all known entities.
        """
        vectors = BatchVectors(self, batch, timeline)
        return [None if term is None else EncodedTerm(vectors, term) for term in batch.terms]

    def encode_pool(self, entities: Tensor, steps: list[int], sizes: list[int]) -> tuple[Tensor, list[int]]:
        """Vectors of the first ``sizes[i]`` entities at ``steps[i]``, and where each step begins among them. A frozen
        model keeps them: each step is encoded once."""
        if not self.is_frozen:
            return self.encode_known(entities, steps, sizes), [0, *accumulate(sizes[:-1])]
        wanted, (tables, first) = list(zip(steps, sizes, strict=True)), self._pools
        new = [each for each in wanted if each not in first]
        if new:
            begins = accumulate((size for _, size in new), initial=sum(map(len, tables)))
            tables.append(self.encode_known(entities, *map(list, zip(*new, strict=True))))
            tables[:] = [torch.cat(tables)] if len(tables) > 1 else tables
            first.update(zip(new, begins, strict=False))
        return tables[0], [first[each] for each in wanted]

    def frozen_copy(self) -> Self:
        """A copy that does not learn."""
        twin = copy.deepcopy(self, {id(shared): shared for shared in (self.catalog, self._answers)})
        twin.is_frozen = True
        return twin.requires_grad_(False).eval()

    def frozen_view(self, former: RowSource) -> Self:
        """The model with the rows that ``former`` provides: like a frozen copy, without the copy."""
        twin = self.with_rows_of(former)
        twin.is_frozen, twin._pools = True, ([], {})
        return twin

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._pools = [], {}
        return super().load_state_dict(*args, **kwargs)

    def expand(
        self,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Self:
        """Makes room for new entities, relations or steps; existing rows keep their values."""
        if num_relations is not None and self.reciprocal:
            num_relations *= 2
        self.expand_tables({"entity": num_entities, "relation": num_relations, "time": num_steps}, generator)
        return self

    # Scores --------------------------------------------------------------------------------------------

    def relation_rows(self, rel: Tensor, side: Side) -> Tensor:
        """Rows of the relation tables for queries of one side, ``[*] → [*]``."""
        return 2 * rel + (side == "head") if self.reciprocal else rel

    def encode_relation(self, rel: Tensor, time: Tensor, side: Side) -> Tensor:
        """Vectors of relations for queries of one side, ``[*] → [*, d]``."""
        return self.relation(self.relation_rows(rel, side), time)

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
        inverse = self.encode_relation(quads[:, REL], quads[:, TIME], "head") if self.reciprocal else rel
        return torch.cat([self.query_of(head, rel, "tail"), self.query_of(tail, inverse, "head")])

    def forward(self, quads: Tensor) -> Tensor:
        """Scores of quads, ``[B, 4] → [B]``: with reciprocal relations the mean of both directions."""
        head, tail = self.entity(ends_of(quads), quads[:, TIME, None]).unbind(1)
        time, rel = quads[:, TIME], quads[:, REL]
        score = self.decoder(head, self.encode_relation(rel, time, "tail"), tail)
        if not self.reciprocal:
            return score
        return (score + self.decoder(tail, self.encode_relation(rel, time, "head"), head)) / 2

    def query_vectors(self, quads: Tensor, side: Side) -> Tensor:
        """Query vectors for ``side`` of each quad, ``[B, 4] → [B, d]``."""
        given, _ = query_columns(side)
        time = quads[:, TIME]
        entity = self.entity(quads[:, given], time)
        return self.query_of(entity, self.encode_relation(quads[:, REL], time, side), side)

    def candidate_vectors(self, entities: Tensor, time: int) -> Tensor:
        """Vectors of entities at one step, ``[n] → [n, d]``."""
        return self.encode_known(entities, [time], [len(entities)])

    def score_all(self, quads: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Every query against the same candidate vectors, ``[B, 4] × [n, d] → [B, n]``."""
        return all_scores(self.query_vectors(quads, side), candidates, self.decoder.similarity)

    def score_candidates(self, quads: Tensor, side: Side, entities: Tensor) -> Tensor:
        """Queries at any steps against the same entities, ``[B, 4] × [n] → [B, n]``."""
        if self.static_entities:
            return self.score_all(quads, side, self.candidate_vectors(entities, 0))
        steps, place = torch.unique(quads[:, TIME], return_inverse=True)
        scores = quads.new_empty(len(quads), len(entities), dtype=torch.get_default_dtype())
        for number, step in enumerate(steps.tolist()):
            rows = (place == number).nonzero().flatten()
            scores[rows] = self.score_all(quads[rows], side, self.candidate_vectors(entities, step))
        return scores

    @torch.no_grad()
    def score_entities(self, quad: Tensor, side: Side, entities: Tensor) -> Tensor:
        """One query against some entities, ``[1, 4] × [n] → [n]``. Vectors that are rows of a table are not copied."""
        if not self.static_entities or not self.reads_tables or self.is_sharded:
            return self.score_all(quad, side, self.candidate_vectors(entities, int(quad[0, TIME]))).squeeze(0)
        table = self.get_parameter("entity_vectors")
        # A part for each thread, of equal sizes.
        parts = torch.get_num_threads() if len(entities) >= _ENTITIES_PER_THREAD else 1
        padding = entities[-1:].expand(-len(entities) % parts)
        index = torch.cat([entities, padding]).view(parts, -1)
        query = self.query_vectors(quad, side).expand(parts, -1).contiguous()
        return sampled_scores(query, table, index, self.decoder.similarity).flatten()[: len(entities)]

    def rank_counter(
        self,
        known: Tensor,
        step: int,
        communicator: Communicator,
        limit: int | None = None,
        vectors: Tensor | None = None,
    ) -> Callable[[Sequence[RankedAnswers]], list[Tensor]]:
        """A function that counts the ranks of sets of answers, as :func:`~tkg_incremental.ops.ranking.count_ranks`
        does, with the same results on all processes.

        Args:
            known: ``[n]`` the candidates; an answer's column is its position among them.
            step: The step whose vectors the candidates have.
            communicator: Connects the processes that share the work.
            limit: Answers whose filtered rank is above this may get any other rank above it, which saves most of the
                work for them.
            vectors: ``[m, d]`` vectors that begin with those of the candidates; by default, they are encoded.
        """
        candidates = self.candidate_vectors(known, step) if vectors is None else vectors[: len(known)]
        similarity = self.decoder.similarity
        return lambda sets: count_in_parts(sets, candidates, similarity, communicator, limit)

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


def _recording_options(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that keeps its arguments in ``options``, unless that of a subclass has done so."""
    signature = inspect.signature(init)

    @wraps(init)
    def recording(self: TKGModel, *args: Any, **kwargs: Any) -> None:
        if "options" not in self.__dict__:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            given = list(bound.arguments.items())[1:]
            self.__dict__["options"] = {name: value for name, value in given if name not in _NOT_OPTIONS}
        init(self, *args, **kwargs)

    return recording
