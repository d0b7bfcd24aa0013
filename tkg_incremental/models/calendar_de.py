from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import Dropout, make_decoder
from tkg_incremental.models.encoders.calendar import CalendarEncoder, Unit

if TYPE_CHECKING:
    from tkg_incremental.datasets.base import TKGDataset


class CalendarDE(TKGModel):
    r"""Diachronic embeddings with own sines for year, month and day
    (:class:`~tkg_incremental.models.encoders.CalendarEncoder`): DE-SimplE as in the `"Diachronic Embedding for Temporal
    Knowledge Graph Completion" <https://arxiv.org/abs/1907.03143>`_ paper, or DE-DistMult, DE-TransE, DE-ComplEx.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors; with SimplE the two roles share it. Even.
        decoder: ``"simple"``, ``"distmult"``, ``"transe"`` or ``"complex"``.
        temporal_share: Share of the channels that depend on time: one minus the paper's static share.
        first_date: Date of the first step; :meth:`from_dataset` takes it from the dataset.
        unit: Distance of two steps: ``"day"``, ``"month"`` or ``"year"``.
        max_frequency: Bound of the initial frequencies of months and days.
        dropout: Probability of a channel of a query vector to be dropped in training; not with TransE.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 200,
        decoder: str = "simple",
        temporal_share: float = 0.32,
        first_date: str = "2000-01-01",
        unit: Unit = "day",
        max_frequency: float | None = None,
        dropout: float = 0.0,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        encoder = CalendarEncoder(*sizes, temporal_share, first_date, unit, max_frequency, generator)
        made = make_decoder(decoder, hidden_channels)
        super().__init__(encoder, Dropout(made, dropout) if dropout else made, reciprocal=reciprocal)
        self.options = {
            "hidden_channels": hidden_channels,
            "reciprocal": reciprocal,
            "decoder": decoder,
            "temporal_share": temporal_share,
            "first_date": first_date,
            "unit": unit,
            "max_frequency": max_frequency,
            "dropout": dropout,
        }

    @classmethod
    def from_dataset(cls, dataset: TKGDataset, hidden_channels: int = 200, **kwargs: Any) -> TKGModel:
        """A new model of the dataset's size that knows its names and its calendar."""
        axis = dataset.timeline.axis
        if axis.unit not in ("day", "year") or list(axis.first) != [axis.first[0] + i for i in range(len(axis.first))]:
            raise ValueError("dataset must have one step per day or per year (its steps are of another kind)")
        first = datetime.date.fromordinal(axis.first[0]) if axis.unit == "day" else datetime.date(axis.first[0], 1, 1)
        calendar = {"first_date": first.isoformat(), "unit": axis.unit}
        return super().from_dataset(dataset, hidden_channels, **(calendar | kwargs))
