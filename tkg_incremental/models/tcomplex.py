from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import ComplEx
from tkg_incremental.models.encoders import TComplExEncoder


class TComplEx(TKGModel):
    r"""TComplEx (:class:`~tkg_incremental.models.encoders.TComplExEncoder`) from the `"Tensor Decompositions for
    Temporal Knowledge Base Completion" <https://arxiv.org/abs/2004.04926>`_ paper: ComplEx with
    relations that are multiplied by the vector of the step.

    .. math::
        \phi(s, r, o, t) = \mathrm{Re}\,\langle \mathbf{s}, \mathbf{r} \odot \boldsymbol{\tau}_t,
        \overline{\mathbf{o}} \rangle

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the rank of the paper. Even.
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
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations * (1 + reciprocal), num_steps, hidden_channels)
        super().__init__(TComplExEncoder(*sizes, generator), ComplEx(), reciprocal=reciprocal)
        self.options = {"hidden_channels": hidden_channels, "reciprocal": reciprocal}
