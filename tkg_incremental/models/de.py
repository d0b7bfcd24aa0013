from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import Dropout, make_decoder
from tkg_incremental.models.encoders import DiachronicEncoder
from tkg_incremental.models.encoders.diachronic import Layout


class DE(TKGModel):
    r"""Diachronic embeddings (:class:`~tkg_incremental.models.encoders.DiachronicEncoder`) with the score of
    choice: DE-ComplEx by default, or DE-DistMult, DE-SimplE, DE-TransE.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: ``"complex"``, ``"distmult"``, ``"simple"`` or ``"transe"``.
        temporal_share: Share of the dimensions that depend on time.
        max_frequency: Bound of the initial frequencies, in radians a step; by default Glorot's, as in the released TIE
            code, which depends on the number of entities.
        layout: Order of the temporal channels: ``"tie"`` as in the released TIE code, ``"paper"`` as in DE's paper.
        dropout: Probability of a channel of a query vector to be dropped in training.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        decoder: str = "complex",
        temporal_share: float = 0.5,
        max_frequency: float | None = None,
        layout: Layout = "tie",
        dropout: float = 0.0,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        encoder = DiachronicEncoder(*sizes, temporal_share, max_frequency, generator, layout)
        made = make_decoder(decoder, hidden_channels)
        super().__init__(encoder, Dropout(made, dropout) if dropout else made, reciprocal=reciprocal)
        self.options = {
            "hidden_channels": hidden_channels,
            "decoder": decoder,
            "temporal_share": temporal_share,
            "max_frequency": max_frequency,
            "layout": layout,
            "dropout": dropout,
            "reciprocal": reciprocal,
        }
