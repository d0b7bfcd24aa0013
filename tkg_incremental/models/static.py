from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import make_decoder
from tkg_incremental.models.encoders import StaticEncoder


class Static(TKGModel):
    r"""Vectors that ignore time (:class:`~tkg_incremental.models.encoders.StaticEncoder`): the control.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: ``"complex"``, ``"distmult"``, ``"simple"`` or ``"transe"``.
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
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        made = make_decoder(decoder, hidden_channels)
        super().__init__(StaticEncoder(*sizes, generator), made, reciprocal=reciprocal)
        self.options = {"hidden_channels": hidden_channels, "decoder": decoder, "reciprocal": reciprocal}
