from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.encoders.static_entities import StaticEntityEncoder, check_even, complex_product


class TComplExEncoder(StaticEntityEncoder):
    r"""Relations of TComplEx from the `"Tensor Decompositions for Temporal Knowledge Base Completion"
    <https://arxiv.org/abs/2004.04926>`_ paper.

    The complex vector of a relation is multiplied by that of the step; entities do not depend on time:

    .. math::
        \mathbf{z}^t_r = \mathbf{r} \odot \boldsymbol{\tau}_t, \qquad \mathbf{z}^t_i = \mathbf{z}_i

    The first half of a vector is its real part, the second half its imaginary part.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the rank of the paper. Even.
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
        check_even(hidden_channels)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.add_table("time_vectors", "time", hidden_channels)
        self.reset_parameters(generator)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return complex_product(self.rows("relation_vectors", index), self.rows("time_vectors", time))
