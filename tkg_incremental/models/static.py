from __future__ import annotations

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import make_decoder


class Static(TKGModel):
    r"""Vectors that ignore time, :math:`\mathbf{z}^t_i = \mathbf{z}_i`: the control.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: ``"complex"``, ``"distmult"``, ``"simple"`` or ``"transe"``.
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
        decoder: str = "complex",
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, make_decoder(decoder), reciprocal)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.reset_parameters(seed)
