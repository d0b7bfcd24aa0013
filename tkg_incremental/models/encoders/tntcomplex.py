from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.encoders.static import StaticEncoder
from tkg_incremental.ops.complex_numbers import complex_product


class TNTComplExEncoder(StaticEncoder):
    r"""Relations of TNTComplEx from the `"Tensor Decompositions for Temporal Knowledge Base Completion"
    <https://arxiv.org/abs/2004.04926>`_ paper.

    A relation has a temporal part, as in :class:`TComplExEncoder`, and a part that does not depend on time:

    .. math::
        \mathbf{z}^t_r = \mathbf{r} \odot \boldsymbol{\tau}_t + \mathbf{r}', \qquad \mathbf{z}^t_i = \mathbf{z}_i

    The first half of a vector is its real part, the second half its imaginary part.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the rank of the paper. Even.
        generator: Source of the initial values.
    """

    relation_tables = (
        ("relation_vectors", "relation"),
        ("static_relation_vectors", "relation"),
        ("time_vectors", "time"),
    )
    is_complex = True

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        temporal, static = self.relation_factors(index, time)
        return temporal + static

    def relation_factors(self, index: Tensor, time: Tensor) -> list[Tensor]:
        temporal = complex_product(self.rows("relation_vectors", index), self.rows("time_vectors", time))
        return [temporal, self.rows("static_relation_vectors", index)]
