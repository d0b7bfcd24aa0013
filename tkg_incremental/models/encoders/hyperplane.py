from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.models.encoder import Encoder
from tkg_incremental.ops.stepwise import Formula


class HyperplaneEncoder(Encoder):
    r"""Hyperplanes in time from the `"HyTE: Hyperplane-based Temporally aware Knowledge Graph Embedding"
    <https://aclanthology.org/D18-1225>`_ paper.

    Entities and relations are projected onto the hyperplane of the step, whose unit normal is learnt:

    .. math::
        \mathbf{z}^t_i = \mathbf{z}_i - (\mathbf{w}_t^\top \mathbf{z}_i)\, \mathbf{w}_t, \qquad
        \lVert \mathbf{w}_t \rVert_2 = 1

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        generator: Source of the initial values.
    """

    formula_tables = ("entity_vectors",)

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        # Kept at length one: weight decay would take those of steps to come to zero, where their direction is noise and
        # its gradient so large that clipping leaves nothing of the others.
        self.add_table("normals", "time", hidden_channels, unit=True)
        self.reset_parameters(generator)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        return self._project(self.rows("entity_vectors", index), time)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self._project(self.rows("relation_vectors", index), time)

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        vectors = self._known_by_kernel(order, steps, sizes)
        if vectors is not None:
            return vectors
        normals = self._normals(torch.tensor(steps, device=order.device))
        return _Known.apply(self.rows("entity_vectors", order[: max(sizes)]), normals, sizes)

    def formula(self, steps: Tensor) -> Formula:
        return Formula("hyperplane", steps, self._normals(steps))

    def _normals(self, time: Tensor) -> Tensor:
        return F.normalize(self.rows("normals", time), dim=-1)

    def _project(self, vectors: Tensor, time: Tensor) -> Tensor:
        normal = self._normals(time)
        along = (vectors * normal).sum(-1, keepdim=True)
        return vectors - along * normal


class _Known(torch.autograd.Function):
    # Many entities at many steps: one array of the full size in both directions.

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, normals: Tensor, sizes: Sequence[int]) -> Tensor:
        ctx.save_for_backward(vectors, normals)
        ctx.sizes = sizes
        out = vectors.new_empty(sum(sizes), vectors.size(1))
        for normal, part in zip(normals, out.split(list(sizes)), strict=True):
            some = vectors[: len(part)]
            along = (some * normal).sum(1)  # not as a product of matrices, which autocast would take bits from
            torch.addr(some, along, normal, alpha=-1, out=part)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        vectors, normals = ctx.saved_tensors
        grad_vectors, grad_normals = torch.zeros_like(vectors), torch.empty_like(normals)
        for i, (normal, part) in enumerate(zip(normals, grad.split(list(ctx.sizes)), strict=True)):
            some, along = vectors[: len(part)], part @ normal
            grad_vectors[: len(part)].add_(part).addr_(along, normal, alpha=-1)
            grad_normals[i] = -(part.t() @ (some @ normal) + some.t() @ along)
        return grad_vectors, grad_normals, None
