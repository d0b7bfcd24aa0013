from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import TransE


class TTransE(TKGModel):
    r"""TTransE from the `"Deriving Validity Time in Knowledge Graph" <https://doi.org/10.1145/3184558.3191639>`_ paper:
    TransE with the vector of the step added to the relation.

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

    static_entities = True

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
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, TransE(p), reciprocal)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.add_table("time_vectors", "time", hidden_channels)
        self.reset_parameters(seed)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index) + self.rows("time_vectors", time)
