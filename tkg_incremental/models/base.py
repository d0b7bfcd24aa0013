"""A model: an encoder, a decoder, and the questions one can ask it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.encoder import Encoder, RowSource
from tkg_incremental.ops.answers import HEAD, REL, TAIL, TIME, Side, query_columns
from tkg_incremental.ops.scores import all_scores
from tkg_incremental.ops.shared import Places, SharedTable

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

    def frozen_view(self, former: RowSource) -> FrozenModel:
        """The model with its rows as ``former`` remembers them: like a frozen copy, without the copy."""
        return FrozenModel(self.encoder.with_rows_of(former), self.decoder, self.catalog)

    def encode(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors of heads, relations and tails, ``[B, 4] → 3 × [B, d]``."""
        head, tail = self.encode_ends(rows)
        return head, self.encoder.relation(rows[:, REL], rows[:, TIME]), tail

    def encode_ends(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of heads and tails, ``[B, 4] → 2 × [B, d]``."""
        # One look-up for both; by a stride, as a list of columns would travel to the device with every batch.
        ends = self.encoder.entity(rows[:, HEAD : TAIL + 1 : TAIL - HEAD], rows[:, TIME, None])
        return ends[:, 0], ends[:, 1]

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

    def both_queries(self, head: Tensor, rel: Tensor, tail: Tensor) -> Tensor:
        """Query vectors for tails, then for heads, ``3 × [B, d] → [2B, d]``: what a loss over both sides needs."""
        return torch.cat([self.decoder.query(head, rel, "tail"), self.decoder.query(tail, rel, "head")])

    def candidate_vectors(self, entities: Tensor, time: int) -> Tensor:
        """Vectors of entities at one step, ``[n] → [n, d]``: encoded once for all queries of that step."""
        return self.encoder.known(entities, [time], [len(entities)])

    def score_all(self, rows: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Every row against the same candidate vectors, ``[B, 4] × [n, d] → [B, n]``."""
        return all_scores(self.query_vectors(rows, side), candidates, self.decoder.similarity)

    def encode_places(
        self, places: Sequence[tuple[Tensor, Tensor]], order: Tensor, num_known: Tensor
    ) -> tuple[SharedTable, list[Places]]:
        """Encodes each (entity, step) that occurs once.

        Args:
            places: Pairs of ``[R, K]`` entities as places in ``order``, and ``[R]`` the step of each row.
            order: Entities by first appearance.
            num_known: How many of them are known at each step.

        Returns:
            A table of vectors, and for each of ``places`` where in it its entities stand.
        """
        times = [time for _, time in places]
        steps, which = torch.unique(torch.cat(times), return_inverse=True)
        step_of = which.split([len(time) for time in times])
        occurrences = sum(columns.numel() for columns, _ in places)
        known_at, sizes = torch.stack([steps, num_known[steps]]).tolist()
        if sum(sizes) <= occurrences:
            # Every known entity occurs many times: encode them all, without looking.
            table, first = self._encode_known(order, known_at, sizes)
            start = torch.tensor(first, device=order.device)
            known = [Places(columns, start[of]) for of, (columns, _) in zip(step_of, places, strict=True)]
            return SharedTable(table), known
        # A few of many: encode those that occur.
        all_pairs = [of[:, None] * len(order) + columns for of, (columns, _) in zip(step_of, places, strict=True)]
        pairs, index = torch.unique(torch.cat([some.flatten() for some in all_pairs]), return_inverse=True)
        table = self.encoder.entity(order[pairs % len(order)], steps[pairs // len(order)])
        parts = index.split([some.numel() for some in all_pairs])
        return SharedTable(table), [Places(part.view_as(some)) for part, some in zip(parts, all_pairs, strict=True)]

    def _encode_known(self, order: Tensor, steps: list[int], sizes: list[int]) -> tuple[Tensor, list[int]]:
        """All entities known at some steps, and where each step begins among them."""
        return self.encoder.known(order, steps, sizes), [0, *accumulate(sizes[:-1])]

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
        self._encoded: Tensor | None = None
        self._first: dict[tuple[int, int], int] = {}

    def _encode_known(self, order: Tensor, steps: list[int], sizes: list[int]) -> tuple[Tensor, list[int]]:
        wanted = list(zip(steps, sizes, strict=True))
        new = [each for each in wanted if each not in self._first]
        if new:
            table, first = super()._encode_known(order, *map(list, zip(*new, strict=True)))
            begin = 0 if self._encoded is None else len(self._encoded)
            self._first |= {each: begin + start for each, start in zip(new, first, strict=True)}
            self._encoded = table if self._encoded is None else torch.cat([self._encoded, table])
        assert self._encoded is not None
        return self._encoded, [self._first[each] for each in wanted]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._encoded, self._first = None, {}
        return super().load_state_dict(*args, **kwargs)
