"""A model: an encoder, a decoder, and the questions one can ask it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.encoder import Encoder, FormerRows
from tkg_incremental.ops.answers import HEAD, REL, TAIL, TIME, Side, query_columns
from tkg_incremental.ops.scores import all_scores, compare

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

    def frozen_copy(self) -> FrozenModel:
        """A copy that does not learn: what the model knew before a step."""
        twin = FrozenModel(copy.deepcopy(self.encoder), copy.deepcopy(self.decoder), self.catalog)
        return twin.requires_grad_(False)

    def frozen_view(self, former: FormerRows) -> FrozenModel:
        """The model with its rows as ``former`` remembers them: like a frozen copy, without the copy."""
        return FrozenModel(self.encoder.as_before(former), self.decoder, self.catalog)

    def encode(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors of heads, relations and tails, ``[B, 4] → 3 × [B, d]``."""
        time = rows[:, TIME]
        # One look-up for both ends; by a stride, as a list of columns would travel to the device with every batch.
        ends = self.encoder.entity(rows[:, HEAD : TAIL + 1 : TAIL - HEAD], time[:, None])
        return ends[:, 0], self.encoder.relation(rows[:, REL], time), ends[:, 1]

    def forward(self, rows: Tensor) -> Tensor:
        """Scores of rows, ``[B, 4] → [B]``."""
        return self.decoder(*self.encode(rows))

    def query_vectors(self, rows: Tensor, side: Side) -> Tensor:
        """What candidates for ``side`` of each row are compared with, ``[B, 4] → [B, d]``."""
        given, _ = query_columns(side)
        time = rows[:, TIME]
        return self.decoder.query(
            self.encoder.entity(rows[:, given], time), self.encoder.relation(rows[:, REL], time), side
        )

    def both_queries(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Query vectors of all rows for tails, then for heads, ``[2B, d]``, and the scores ``[2B]`` of the rows
        themselves: what a loss over both sides needs, from one look-up."""
        head, rel, tail = self.encode(rows)
        query = torch.cat([self.decoder.query(head, rel, "tail"), self.decoder.query(tail, rel, "head")])
        return query, compare(query, torch.cat([tail, head]), self.decoder.similarity)

    def candidate_vectors(self, entities: Tensor, time: int) -> Tensor:
        """Vectors of entities at one step, ``[n] → [n, d]``: encoded once for all queries of that step."""
        return self.encoder.grid(entities, torch.tensor([time], device=entities.device)).squeeze(0)

    def score_all(self, rows: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Every row against the same candidate vectors, ``[B, 4] × [n, d] → [B, n]``."""
        return all_scores(self.query_vectors(rows, side), candidates, self.decoder.similarity)

    def encode_sample(self, columns: Tensor, time: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes each (entity, step) of a sample once.

        Args:
            columns: ``[R, K]`` entities as places in ``order``.
            time: ``[R]`` the step of each row.
            order: Entities by first appearance.

        Returns:
            Vectors ``[N, d]``, and ``[R, K]`` where each candidate stands among them.
        """
        steps, step_of_row = torch.unique(time, return_inverse=True)
        width = int(columns.max()) + 1 if columns.numel() else 0
        if len(steps) * width <= columns.numel():
            # The sample covers the known entities many times over: encode them all, without looking.
            table = self._encode_grid(order[:width], steps).flatten(0, 1)
            return table, step_of_row[:, None] * width + columns
        # A few of many: encode those that occur.
        pairs, index = torch.unique(step_of_row[:, None] * width + columns, return_inverse=True)
        table = self.encoder.entity(order[pairs % width], steps[pairs // width])
        return table, index

    def _encode_grid(self, entities: Tensor, steps: Tensor) -> Tensor:
        return self.encoder.grid(entities, steps)

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
        model = cls(dataset.num_entities, dataset.num_relations, dataset.num_steps, hidden_channels, **kwargs)  # type: ignore[arg-type, call-arg]
        model.catalog = Catalog.from_dataset(dataset)
        return model


class FrozenModel(TKGModel):
    """A model that does not change, and so need not encode the same entities twice."""

    def __init__(self, encoder: Encoder, decoder: Decoder, catalog: Catalog | None = None) -> None:
        super().__init__(encoder, decoder, catalog)
        self._grid: tuple[int, list[int], Tensor] | None = None

    def _encode_grid(self, entities: Tensor, steps: Tensor) -> Tensor:
        wanted = (len(entities), steps.tolist())
        if self._grid is None or self._grid[:2] != wanted:
            self._grid = (*wanted, super()._encode_grid(entities, steps))
        return self._grid[2]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._grid = None
        return super().load_state_dict(*args, **kwargs)
