"""A model: an encoder, a decoder, and the questions one can ask it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.encoder import Encoder
from tkg_incremental.ops.answers import HEAD, REL, TAIL, TIME, Side, query_columns
from tkg_incremental.ops.scores import all_scores, sampled_scores

if TYPE_CHECKING:
    from tkg_incremental.datasets.base import TKGDataset


class Answer(NamedTuple):
    """One answer to a query: a name and its score."""

    name: str
    score: float


class TKGModel(nn.Module):
    r"""A temporal knowledge graph model :math:`\phi(s, r, o, t) = \mathrm{DEC}(\mathbf{z}^t_s, \mathbf{z}^t_r,
    \mathbf{z}^t_o)`.

    Args:
        encoder: Gives the vectors of entities and relations at a step.
        decoder: Gives the score of three vectors.
        catalog: Names and times, for :meth:`query`.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder, catalog: Catalog | None = None) -> None:
        super().__init__()
        self.encoder, self.decoder, self.catalog = encoder, decoder, catalog
        #: What the named models were made with, so that a saved one can be made again.
        self.options: dict[str, Any] = {}

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def frozen_copy(self) -> TKGModel:
        """A copy that does not learn: what the model knew before a step. The catalog is shared."""
        twin = TKGModel(copy.deepcopy(self.encoder), copy.deepcopy(self.decoder), self.catalog)
        twin.encoder.sparse_gradients = False
        return twin.eval().requires_grad_(False)

    def forward(self, rows: Tensor) -> Tensor:
        """Scores of rows, ``[B, 4] → [B]``."""
        time = rows[:, TIME]
        return self.decoder(
            self.encoder.entity(rows[:, HEAD], time),
            self.encoder.relation(rows[:, REL], time),
            self.encoder.entity(rows[:, TAIL], time),
        )

    def query_vectors(self, rows: Tensor, side: Side) -> Tensor:
        """What candidates for ``side`` of each row are compared with, ``[B, 4] → [B, d]``."""
        given, _ = query_columns(side)
        time = rows[:, TIME]
        return self.decoder.query(
            self.encoder.entity(rows[:, given], time), self.encoder.relation(rows[:, REL], time), side
        )

    def candidate_vectors(self, entities: Tensor, time: int) -> Tensor:
        """Vectors of entities at one step, ``[n] → [n, d]``: encoded once for all queries of that step."""
        return self.encoder.entity(entities, torch.tensor(time, device=entities.device))

    def score_all(self, rows: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Every row against the same candidate vectors, ``[B, 4] × [n, d] → [B, n]``."""
        return all_scores(self.query_vectors(rows, side), candidates, self.decoder.similarity)

    def score_sampled(self, rows: Tensor, side: Side, columns: Tensor, order: Tensor) -> Tensor:
        """Each row against its own candidates.

        Args:
            rows: ``[B, 4]``.
            side: The side the candidates are for.
            columns: ``[B, K]`` candidates as places in ``order``.
            order: Entities by first appearance.
        """
        table, index = self._encode_sample(columns, rows[:, TIME], order)
        return sampled_scores(self.query_vectors(rows, side), table, index, self.decoder.similarity)

    def _encode_sample(self, columns: Tensor, time: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes each (entity, step) of a sample once: vectors ``[N, d]`` and where each candidate stands."""
        steps, step_of_row = torch.unique(time, return_inverse=True)
        width = int(columns.max()) + 1 if columns.numel() else 0
        if len(steps) * width <= columns.numel():
            # The sample covers the known entities many times over: encode them all, without looking.
            table = self.encoder.entity(order[None, :width], steps[:, None]).flatten(0, 1)
            return table, step_of_row[:, None] * width + columns
        # A few of many: encode those that occur.
        pairs, index = torch.unique(step_of_row[:, None] * width + columns, return_inverse=True)
        table = self.encoder.entity(order[pairs % width], steps[pairs // width])
        return table, index

    def expand(
        self,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> TKGModel:
        """Makes room for new entities, relations or steps; known rows keep their values."""
        self.encoder.expand(num_entities, num_relations, num_steps, generator)
        return self

    @torch.no_grad()
    def query(
        self,
        head: str | int | None = None,
        rel: str | int | None = None,
        tail: str | int | None = None,
        time: str | int | None = None,
        k: int = 10,
    ) -> list[Answer]:
        """The ``k`` best answers to a question with exactly one of ``head`` and ``tail`` left out.

        Args:
            head: Name or id, or :obj:`None` if it is asked for.
            rel: Name or id.
            tail: Name or id, or :obj:`None` if it is asked for.
            time: A year or date; an integer on an axis of plain indices.
            k: How many answers.
        """
        if self.catalog is None:
            raise RuntimeError("this model has no catalog of names: make it with from_dataset(), or set .catalog")
        if (head is None) == (tail is None):
            raise ValueError(f"exactly one of head and tail must be None (got head={head!r}, tail={tail!r})")
        if rel is None or time is None:
            raise ValueError(f"rel and time must be given (got rel={rel!r}, time={time!r})")
        if k < 1:
            raise ValueError(f"k must be at least 1 (got {k})")
        side: Side = "head" if head is None else "tail"
        given = tail if head is None else head
        assert given is not None
        step = self.catalog.axis.step_of(time)
        entity = self.catalog.entities.index(given)
        row = torch.tensor([[entity, self.catalog.relations.index(rel), entity, step]], device=self.device)
        known = (self.catalog.first_seen <= step).nonzero().flatten().to(self.device)
        scores = self.score_all(row, side, self.candidate_vectors(known, step)).squeeze(0)
        best = scores.topk(min(k, len(known)))
        names = [self.catalog.entities[i] for i in known[best.indices].tolist()]
        return [Answer(name, score) for name, score in zip(names, best.values.tolist(), strict=True)]

    @classmethod
    def from_dataset(cls, dataset: TKGDataset, hidden_channels: int = 128, **kwargs: object) -> TKGModel:
        """A new model of the dataset's size that knows its names."""
        model = cls(dataset.num_entities, dataset.num_relations, dataset.num_steps, hidden_channels, **kwargs)  # type: ignore[arg-type]
        model.catalog = Catalog.from_dataset(dataset)
        return model
