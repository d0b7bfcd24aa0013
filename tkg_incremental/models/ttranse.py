from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import TransE
from tkg_incremental.models.encoders import TTransEEncoder


class TTransE(TKGModel):
    r"""TTransE (:class:`~tkg_incremental.models.encoders.TTransEEncoder`) from the `"Deriving Validity Time in
    Knowledge Graph" <https://doi.org/10.1145/3184558.3191639>`_ paper.

    .. math::
        \phi(s, r, o, t) = -\lVert \mathbf{s} + \mathbf{r} + \boldsymbol{\tau}_t - \mathbf{o} \rVert_p

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        p: The norm, 1 or 2.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        p: int = 1,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        super().__init__(TTransEEncoder(*sizes, generator), TransE(p), reciprocal=reciprocal)
        self.options = {"hidden_channels": hidden_channels, "p": p, "reciprocal": reciprocal}
