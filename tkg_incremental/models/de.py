from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoders import make_decoder
from tkg_incremental.models.halves import join_halves
from tkg_incremental.ops.stepwise import StepTables

Layout = Literal["tie", "paper"]


class DE(TKGModel):
    r"""Diachronic embeddings from the `"Diachronic Embedding for Temporal Knowledge Graph Completion"
    <https://arxiv.org/abs/1907.03143>`_ paper, with the score of choice: DE-ComplEx by default, or DE-DistMult,
    DE-SimplE, DE-TransE.

    The first :math:`\gamma d` dimensions of an entity swing with time, the others stand still:

    .. math::
        \mathbf{z}^t_i[n] = \begin{cases}
            \mathbf{z}_i[n] \sin(\mathbf{w}_i[n]\, t + \mathbf{b}_i[n]) & n \le \gamma d \\
            \mathbf{z}_i[n] & \text{otherwise}
        \end{cases}

    Relations do not depend on time.

    Decoders such as SimplE and ComplEx read a vector as two halves: head and tail role, or real and imaginary part.
    With ``layout="tie"`` all temporal channels stand first, so that the second half has few or none. With
    ``layout="paper"`` each half has its share of them: the formula above holds for each half on its own.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: ``"complex"``, ``"distmult"``, ``"simple"`` or ``"transe"``.
        temporal_share: :math:`\gamma`, the share of temporal dimensions.
        max_frequency: Initial frequencies :math:`\mathbf{w}` lie between plus and minus this, in radians a step. By
            default they have the bound of the other tables, as in the released TIE code: the more entities, the smaller
            it is, and with small frequencies an answer cannot change from one step to the next.
        layout: ``"tie"``, the temporal channels first, as in the released TIE code; or ``"paper"``, the temporal
            channels of each half first, as in the paper.
        dropout: Probability of a channel of a query vector to be dropped in training; not with TransE.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    formula_tables = ("entity_vectors", "frequency", "phase")

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        decoder: str = "complex",
        temporal_share: float = 0.5,
        max_frequency: float | None = None,
        layout: Layout = "tie",
        dropout: float = 0.0,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        made = make_decoder(decoder, dropout)
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, made, reciprocal)
        if not 0 < temporal_share <= 1:
            raise ValueError(f"temporal_share must lie in (0, 1] (got {temporal_share})")
        if layout not in get_args(Layout):
            raise ValueError(f"layout must be 'tie' or 'paper' (got {layout!r})")
        if layout == "paper" and hidden_channels % 2:
            raise ValueError(f"hidden_channels must be even with layout='paper' (got {hidden_channels})")
        check_frequency(max_frequency)
        self.layout = layout
        # Tables are in the order of "tie" with both layouts, for the kernels' sake; see `_lay_out`.
        parts = 2 if layout == "paper" else 1
        self.temporal_channels = parts * round(temporal_share * hidden_channels / parts)
        if self.temporal_channels == 0:
            raise ValueError(f"temporal_share {temporal_share} leaves none of {hidden_channels} channels for time")
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("frequency", "entity", self.temporal_channels, bound=max_frequency)
        self.add_table("phase", "entity", self.temporal_channels)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.reset_parameters(seed)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        vectors, frequency, phase = (self.rows(name, index) for name in self.formula_tables)
        return self._swing(vectors, torch.addcmul(phase, frequency, time.unsqueeze(-1).to(vectors.dtype)))

    def encode_steps(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        index = order[: max(sizes)]  # one and the same for all tables: rows of other processes come in one exchange
        vectors, frequency, phase = (self.rows(name, index) for name in self.formula_tables)
        parts = zip(steps, sizes, strict=True)
        return torch.cat([self._swing(vectors[:n], torch.add(phase[:n], frequency[:n], alpha=t)) for t, n in parts])

    def step_tables(self, steps: Tensor, tables: Sequence[Tensor]) -> StepTables:
        if self.layout == "tie":
            return StepTables("diachronic", steps, tables)
        columns = torch.arange(self.hidden_channels)
        order = self._lay_out(columns[: self.temporal_channels], columns[self.temporal_channels :])
        return StepTables("diachronic", steps, tables, columns=order)

    def _swing(self, vectors: Tensor, angle: Tensor) -> Tensor:
        moving = vectors[..., : self.temporal_channels] * angle.sin()
        return self._lay_out(moving, vectors[..., self.temporal_channels :].expand(*moving.shape[:-1], -1))

    def _lay_out(self, moving: Tensor, still: Tensor) -> Tensor:
        """Temporal and static channels in the order of the layout, ``[*, a], [*, b] → [*, a + b]``."""
        return torch.cat([moving, still], dim=-1) if self.layout == "tie" else join_halves(moving, still)


def check_frequency(max_frequency: float | None) -> None:
    if max_frequency is not None and not 0 < max_frequency <= math.pi:  # at whole steps, faster looks slower
        raise ValueError(f"max_frequency must lie in (0, π] (got {max_frequency})")
