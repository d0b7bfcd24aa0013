from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import ComplEx
from tkg_incremental.models.halves import join_halves
from tkg_incremental.ops.complex_numbers import complex_product


class ChronoR(TKGModel):
    r"""ChronoR with :math:`k = 2` from the `"ChronoR: Rotation Based Temporal Knowledge Graph Embedding"
    <https://arxiv.org/abs/2103.10379>`_ paper.

    .. math::
        \phi(s, r, o, t) = \mathrm{Re}\,\langle \mathbf{s},
        [\mathbf{r} \,\Vert\, \boldsymbol{\tau}_t] \odot \mathbf{r}_2, \overline{\mathbf{o}} \rangle

    All vectors are complex: the first half is the real part, the second half the imaginary part. The concatenation
    :math:`\Vert` is one of complex vectors.

    The paper penalises fourth powers of the moduli, of the factors and of the differences between steps. Here they are
    third powers, as for TComplEx, unless :attr:`penalty_power` is set to 4: weights of the penalties can then be
    compared between models.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the number of complex channels. Even.
        temporal_share: Share of the complex channels that :math:`\boldsymbol{\tau}_t` has; the others are those
            of :math:`\mathbf{r}`.
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
        temporal_share: float = 0.5,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, ComplEx(), reciprocal)
        temporal = round(temporal_share * hidden_channels / 2)
        if not 0 < temporal < hidden_channels // 2:
            raise ValueError(
                f"temporal_share must leave channels of {hidden_channels // 2} to both the relation and the step "
                f"(got {temporal_share})"
            )
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels - 2 * temporal)
        self.add_table("rotations", "relation", hidden_channels)
        self.add_table("time_vectors", "time", 2 * temporal)
        self.reset_parameters(seed)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        index, time = torch.broadcast_tensors(index, time)
        both = join_halves(self.rows("relation_vectors", index), self.rows("time_vectors", time))
        return complex_product(both, self.rows("rotations", index))
