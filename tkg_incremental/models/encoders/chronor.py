from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.encoders.static import StaticEncoder
from tkg_incremental.ops.complex_numbers import complex_product


class ChronoREncoder(StaticEncoder):
    r"""Relations of ChronoR, :math:`k = 2`, from the `"ChronoR: Rotation Based Temporal Knowledge Graph Embedding"
    <https://arxiv.org/abs/2103.10379>`_ paper.

    The vectors of the relation and of the step stand side by side and are multiplied by a second vector of the
    relation, which does not depend on time:

    .. math::
        \mathbf{z}^t_r = [\mathbf{r} \,\Vert\, \boldsymbol{\tau}_t] \odot \mathbf{r}_2, \qquad
        \mathbf{z}^t_i = \mathbf{z}_i

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
        generator: Source of the initial values.
    """

    is_complex = True

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        temporal_share: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        self.temporal_share = temporal_share
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, generator)

    def add_relation_tables(self) -> None:
        width = self.hidden_channels
        temporal = round(self.temporal_share * width / 2)
        if not 0 < temporal < width // 2:
            raise ValueError(
                f"temporal_share must leave channels of {width // 2} to both the relation and the step "
                f"(got {self.temporal_share})"
            )
        self.add_table("relation_vectors", "relation", width - 2 * temporal)
        self.add_table("rotations", "relation", width)
        self.add_table("time_vectors", "time", 2 * temporal)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        index, time = torch.broadcast_tensors(index, time)
        r_re, r_im = self.rows("relation_vectors", index).chunk(2, dim=-1)
        t_re, t_im = self.rows("time_vectors", time).chunk(2, dim=-1)
        both = torch.cat([r_re, t_re, r_im, t_im], dim=-1)
        return complex_product(both, self.rows("rotations", index))
