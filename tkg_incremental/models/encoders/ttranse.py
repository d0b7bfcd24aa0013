from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.encoders.static import StaticEncoder


class TTransEEncoder(StaticEncoder):
    r"""Relations of TTransE from the `"Deriving Validity Time in Knowledge Graph"
    <https://doi.org/10.1145/3184558.3191639>`_ paper.

    The vector of the step is added to that of the relation; entities do not depend on time:

    .. math::
        \mathbf{z}^t_r = \mathbf{r} + \boldsymbol{\tau}_t, \qquad \mathbf{z}^t_i = \mathbf{z}_i

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        generator: Source of the initial values.
    """

    relation_tables = (("relation_vectors", "relation"), ("time_vectors", "time"))

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index) + self.rows("time_vectors", time)
