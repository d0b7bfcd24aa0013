from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import ConjugateTransE
from tkg_incremental.models.halves import halves


class TeRo(TKGModel):
    r"""TeRo from the `"TeRo: A Time-aware Knowledge Graph Embedding via Temporal Rotation"
    <https://aclanthology.org/2020.coling-main.139>`_ paper: each complex channel of an entity is rotated by an angle
    that belongs to the step.

    .. math::
        \phi(s, r, o, t) = -\lVert \mathbf{s} \odot e^{\mathrm{i} \boldsymbol{\theta}_t} + \mathbf{r} -
        \overline{\mathbf{o} \odot e^{\mathrm{i} \boldsymbol{\theta}_t}} \rVert_1

    The first half of a vector is its real part, the second half its imaginary part.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors, twice the number of complex channels. Even.
        max_angle: Bound of the initial angles, in radians; by default that of the other tables.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        max_angle: float | None = None,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, ConjugateTransE(), reciprocal)
        if max_angle is not None and max_angle <= 0:
            raise ValueError(f"max_angle must be positive (got {max_angle})")
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.add_table("angles", "time", hidden_channels // 2, bound=max_angle)
        self.reset_parameters(seed)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        # One sine for each step: there are many entities at each.
        steps, place = torch.unique(time, return_inverse=True)
        angles = self.rows("angles", steps)
        vectors = self.rows("entity_vectors", index)
        return _turn(vectors, F.embedding(place, angles.cos()), F.embedding(place, angles.sin()))

    def encode_steps(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        # One angle a step instead of one an entity and step: few sines, and they broadcast.
        vectors = self.rows("entity_vectors", order[: max(sizes)])
        angles = self.rows("angles", torch.tensor(steps, device=order.device))
        parts = zip(sizes, angles.cos(), angles.sin(), strict=True)
        return torch.cat([_turn(vectors[:size], cos, sin) for size, cos, sin in parts])


def _turn(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    re, im = halves(vectors)
    return torch.cat([re * cos - im * sin, re * sin + im * cos], dim=-1)
