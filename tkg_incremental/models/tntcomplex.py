from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import ComplEx
from tkg_incremental.ops.complex_numbers import complex_product


class TNTComplEx(TKGModel):
    r"""TNTComplEx from the `"Tensor Decompositions for Temporal Knowledge Base Completion"
    <https://arxiv.org/abs/2004.04926>`_ paper: ComplEx with relations of a temporal and a static part.

    .. math::
        \phi(s, r, o, t) = \mathrm{Re}\,\langle \mathbf{s}, \mathbf{r} \odot \boldsymbol{\tau}_t + \mathbf{r}',
        \overline{\mathbf{o}} \rangle

    The first half of a vector is its real part, the second half its imaginary part.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the rank of the paper. Even.
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
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, ComplEx(), reciprocal)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.add_table("static_relation_vectors", "relation", hidden_channels)
        self.add_table("time_vectors", "time", hidden_channels)
        self.reset_parameters(seed)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        temporal, static = self.relation_factors(index, time)
        return temporal + static

    def relation_factors(self, index: Tensor, time: Tensor) -> list[Tensor]:
        temporal = complex_product(self.rows("relation_vectors", index), self.rows("time_vectors", time))
        return [temporal, self.rows("static_relation_vectors", index)]
