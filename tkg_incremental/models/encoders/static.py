from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.encoders.static_entities import StaticEntityEncoder


class StaticEncoder(StaticEntityEncoder):
    r"""Vectors that do not depend on time, :math:`\mathbf{z}^t_i = \mathbf{z}_i`: the control.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        generator: Source of the initial values.
    """

    static_entities = True

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.reset_parameters(generator)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)
