from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import ConjugateTransE
from tkg_incremental.models.encoders import TeRoEncoder


class TeRo(TKGModel):
    r"""TeRo (:class:`~tkg_incremental.models.encoders.TeRoEncoder`) from the `"TeRo: A Time-aware Knowledge Graph
    Embedding via Temporal Rotation" <https://aclanthology.org/2020.coling-main.139>`_ paper.

    .. math::
        \phi(s, r, o, t) = -\lVert \mathbf{s} \odot e^{\mathrm{i} \boldsymbol{\theta}_t} + \mathbf{r} -
        \overline{\mathbf{o} \odot e^{\mathrm{i} \boldsymbol{\theta}_t}} \rVert_1

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the number of complex channels. Even.
        max_angle: Bound of the initial angles, in radians; by default that of the other tables.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        max_angle: float | None = None,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        super().__init__(TeRoEncoder(*sizes, max_angle, generator), ConjugateTransE(), reciprocal=reciprocal)
        self.options = {"hidden_channels": hidden_channels, "reciprocal": reciprocal}
        if max_angle is not None:
            self.options["max_angle"] = max_angle
