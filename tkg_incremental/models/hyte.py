from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import TransE
from tkg_incremental.models.encoders import HyperplaneEncoder


class HyTE(TKGModel):
    r"""Hyperplanes in time (:class:`~tkg_incremental.models.encoders.HyperplaneEncoder`) with TransE and the
    :math:`L_1` norm.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        if hidden_channels < 2:  # the hyperplane of a line is a point
            raise ValueError(f"hidden_channels must be at least 2 (got {hidden_channels})")
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        super().__init__(HyperplaneEncoder(*sizes, generator), TransE(p=1), reciprocal=reciprocal)
        self.options = {"hidden_channels": hidden_channels, "reciprocal": reciprocal}
