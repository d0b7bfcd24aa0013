from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import ComplEx
from tkg_incremental.models.encoders import ChronoREncoder


class ChronoR(TKGModel):
    r"""ChronoR with :math:`k = 2` (:class:`~tkg_incremental.models.encoders.ChronoREncoder`) from the `"ChronoR:
    Rotation Based Temporal Knowledge Graph Embedding" <https://arxiv.org/abs/2103.10379>`_ paper.

    .. math::
        \phi(s, r, o, t) = \mathrm{Re}\,\langle \mathbf{s},
        [\mathbf{r} \,\Vert\, \boldsymbol{\tau}_t] \odot \mathbf{r}_2, \overline{\mathbf{o}} \rangle

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the number of complex channels. Even.
        temporal_share: Share of the complex channels that belong to the step.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        temporal_share: float = 0.5,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        super().__init__(ChronoREncoder(*sizes, temporal_share, generator), ComplEx(), reciprocal=reciprocal)
        self.options = {"hidden_channels": hidden_channels, "temporal_share": temporal_share, "reciprocal": reciprocal}
