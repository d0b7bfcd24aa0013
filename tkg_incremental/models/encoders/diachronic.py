from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

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

    def grid(self, index: Tensor, steps: Tensor) -> Tensor:
        vectors, frequency, phase = (self.rows(name, index) for name in ("entity_vectors", "frequency", "phase"))
        return _Grid.apply(vectors, frequency, phase, steps)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)


class _Grid(torch.autograd.Function):
    # Many entities at many steps is the bulk of training. Step by step, so that what a step needs stays in the
    # cache, and without the temporaries of the formula above: in both directions one array of the full size.

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, frequency: Tensor, phase: Tensor, steps: Tensor) -> Tensor:
        ctx.save_for_backward(vectors, frequency, phase, steps)
        channels = frequency.size(1)
        out = vectors.new_empty(len(steps), *vectors.shape)
        for z, step in zip(out, steps.to(vectors.dtype), strict=True):
            swing = torch.addcmul(phase, frequency, step).sin_()
            torch.mul(vectors[:, :channels], swing, out=z[:, :channels])
            z[:, channels:] = vectors[:, channels:]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        vectors, frequency, phase, steps = ctx.saved_tensors
        channels = frequency.size(1)
        moving = vectors[:, :channels]
        grad_vectors = torch.zeros_like(vectors)
        grad_angle, grad_frequency = torch.zeros_like(phase), torch.zeros_like(frequency)
        for g, step in zip(grad, steps.to(vectors.dtype), strict=True):
            angle = torch.addcmul(phase, frequency, step)
            grad_vectors[:, :channels].addcmul_(g[:, :channels], angle.sin())
            grad_vectors[:, channels:] += g[:, channels:]
            by_angle = angle.cos_().mul_(moving).mul_(g[:, :channels])
            grad_angle += by_angle
            grad_frequency.addcmul_(by_angle, step)
        return grad_vectors, grad_frequency, grad_angle, None
