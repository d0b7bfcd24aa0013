from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.models.encoder import Encoder


class HyperplaneEncoder(Encoder):
    r"""Hyperplanes in time from the `"HyTE: Hyperplane-based Temporally aware Knowledge Graph Embedding"
    <https://aclanthology.org/D18-1225>`_ paper.

    Entities and relations are projected onto the hyperplane of the step, whose unit normal is learnt:

    .. math::
        \mathbf{z}^t_i = \mathbf{z}_i - (\mathbf{w}_t^\top \mathbf{z}_i)\, \mathbf{w}_t, \qquad
        \lVert \mathbf{w}_t \rVert_2 = 1

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        generator: Source of the initial values.
    """

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
        self.add_table("normals", "time", hidden_channels)
        self.reset_parameters(generator)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        return self._project(self.rows("entity_vectors", index), time)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self._project(self.rows("relation_vectors", index), time)

    def _project(self, vectors: Tensor, time: Tensor) -> Tensor:
        normal = F.normalize(self.rows("normals", time), dim=-1)
        along = (vectors * normal).sum(-1, keepdim=True)
        return vectors - along * normal
