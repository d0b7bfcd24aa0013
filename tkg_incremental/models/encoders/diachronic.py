from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.encoder import Encoder


class DiachronicEncoder(Encoder):
    r"""Diachronic embeddings from the `"Diachronic Embedding for Temporal Knowledge Graph Completion"
    <https://arxiv.org/abs/1907.03143>`_ paper.

    The first :math:`\gamma d` dimensions of an entity swing with time, the others stand still:

    .. math::
        \mathbf{z}^t_i[n] = \begin{cases}
            \mathbf{z}_i[n] \sin(\mathbf{w}_i[n]\, t + \mathbf{b}_i[n]) & n \le \gamma d \\
            \mathbf{z}_i[n] & \text{otherwise}
        \end{cases}

    Relations do not depend on time.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        temporal_share: :math:`\gamma`, the share of temporal dimensions.
        generator: Source of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        temporal_share: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels)
        if not 0 < temporal_share <= 1:
            raise ValueError(f"temporal_share must lie in (0, 1] (got {temporal_share})")
        self.temporal_channels = round(temporal_share * hidden_channels)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("frequency", "entity", self.temporal_channels)
        self.add_table("phase", "entity", self.temporal_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.reset_parameters(generator)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        vectors = self.rows("entity_vectors", index)
        angle = torch.addcmul(
            self.rows("phase", index), self.rows("frequency", index), time.unsqueeze(-1).to(vectors.dtype)
        )
        moving = vectors[..., : self.temporal_channels] * angle.sin()
        still = vectors[..., self.temporal_channels :].expand(*moving.shape[:-1], -1)
        return torch.cat([moving, still], dim=-1)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)
