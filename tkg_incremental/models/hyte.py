from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import TransE
from tkg_incremental.ops.stepwise import StepTables


class HyTE(TKGModel):
    r"""Hyperplanes in time from the `"HyTE: Hyperplane-based Temporally aware Knowledge Graph Embedding"
    <https://aclanthology.org/D18-1225>`_ paper, with TransE and the :math:`L_1` norm.

    Entities and relations are projected onto the hyperplane of the step, whose unit normal is learnt:

    .. math::
        \mathbf{z}^t_i = \mathbf{z}_i - (\mathbf{w}_t^\top \mathbf{z}_i)\, \mathbf{w}_t, \qquad
        \lVert \mathbf{w}_t \rVert_2 = 1

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    formula_tables = ("entity_vectors",)
    copies_last_step = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        if hidden_channels < 2:  # the hyperplane of a line is a point
            raise ValueError(f"hidden_channels must be at least 2 (got {hidden_channels})")
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, TransE(p=1), reciprocal)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        # Kept at length one: weight decay would take those of steps to come to zero, where their direction is noise and
        # its gradient so large that clipping leaves nothing of the others.
        self.add_table("normals", "time", hidden_channels, unit=True)
        self.reset_parameters(seed)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        return _project(self.rows("entity_vectors", index), self._normals(time))

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return _project(self.rows("relation_vectors", index), self._normals(time))

    def encode_steps(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        vectors = self.rows("entity_vectors", order[: max(sizes)])
        normals = self._normals(torch.tensor(steps, device=order.device))
        return torch.cat([_project(vectors[:size], normal) for size, normal in zip(sizes, normals, strict=True)])

    def step_tables(self, steps: Tensor, tables: Sequence[Tensor]) -> StepTables:
        return StepTables("hyperplane", steps, tables, self._normals(steps))

    def _normals(self, time: Tensor) -> Tensor:
        return F.normalize(self.rows("normals", time), dim=-1)


def _project(vectors: Tensor, normals: Tensor) -> Tensor:
    # Not as a product of matrices, which autocast would take bits from.
    return vectors - (vectors * normals).sum(-1, keepdim=True) * normals
