from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.models.encoder import Encoder
from tkg_incremental.ops.stepwise import Formula

Layout = Literal["tie", "paper"]


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

    Decoders such as SimplE and ComplEx read a vector as two halves: head and tail role, or real and imaginary part.
    With ``layout="tie"`` all temporal channels stand first, so that the second half has few or none. With
    ``layout="paper"`` each half has its share of them: the formula above holds for each half on its own.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        temporal_share: :math:`\gamma`, the share of temporal dimensions.
        max_frequency: Initial frequencies :math:`\mathbf{w}` lie between plus and minus this, in radians a step. By
            default they have the bound of the other tables, as in the released TIE code: the more entities, the smaller
            it is, and with small frequencies an answer cannot change from one step to the next.
        generator: Source of the initial values.
        layout: ``"tie"``, the temporal channels first, as in the released TIE code; or ``"paper"``, the temporal
            channels of each half first, as in the paper.
    """

    formula_tables = ("entity_vectors", "frequency", "phase")

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        temporal_share: float = 0.5,
        max_frequency: float | None = None,
        generator: torch.Generator | None = None,
        layout: Layout = "tie",
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels)
        if not 0 < temporal_share <= 1:
            raise ValueError(f"temporal_share must lie in (0, 1] (got {temporal_share})")
        if layout not in get_args(Layout):
            raise ValueError(f"layout must be 'tie' or 'paper' (got {layout!r})")
        if layout == "paper" and hidden_channels % 2:
            raise ValueError(f"hidden_channels must be even with layout='paper' (got {hidden_channels})")
        self.layout = layout
        # Tables are in the order of "tie" with both layouts, for the kernels' sake; see `_lay_out`.
        parts = 2 if layout == "paper" else 1
        self.temporal_channels = parts * round(temporal_share * hidden_channels / parts)
        if self.temporal_channels == 0:
            raise ValueError(f"temporal_share {temporal_share} leaves none of {hidden_channels} channels for time")
        if max_frequency is not None and not 0 < max_frequency <= math.pi:  # at whole steps, faster looks slower
            raise ValueError(f"max_frequency must lie in (0, π] (got {max_frequency})")
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_table("frequency", "entity", self.temporal_channels, bound=max_frequency)
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
        if self.layout == "paper":
            return _interleave(moving, still)
        return torch.cat([moving, still], dim=-1)

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        vectors = self._known_by_kernel(order, steps, sizes)
        if vectors is not None:
            return vectors
        index = order[: max(sizes)]  # one and the same for all tables: what is far away comes with one question
        return self._lay_out(_Known.apply(*(self.rows(name, index) for name in self.formula_tables), steps, sizes))

    def formula(self, steps: Tensor) -> Formula:
        columns = None if self.layout == "tie" else self._lay_out(torch.arange(self.hidden_channels)[None])[0]
        return Formula("diachronic", steps, columns=columns)

    def _lay_out(self, vectors: Tensor) -> Tensor:
        """Brings vectors whose temporal channels stand first, ``[n, d]``, into the order of the layout."""
        if self.layout == "tie":
            return vectors
        return _interleave(vectors[:, : self.temporal_channels], vectors[:, self.temporal_channels :])

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)


def _interleave(moving: Tensor, still: Tensor) -> Tensor:
    """Half of each, then the other half of each: ``[*, a], [*, b] → [*, a + b]``."""
    (moving_1, moving_2), (still_1, still_2) = _halves(moving), _halves(still)
    return torch.cat([moving_1, still_1, moving_2, still_2], dim=-1)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    half = x.size(-1) // 2  # unlike `chunk`, two parts even if there are no channels
    return x[..., :half], x[..., half:]


class _Known(torch.autograd.Function):
    # Many entities at many steps, without the temporaries of the formula above.

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, frequency: Tensor, phase: Tensor, steps: Sequence[int], sizes: Sequence[int]
    ) -> Tensor:
        channels = frequency.size(1)
        out = vectors.new_empty(sum(sizes), vectors.size(1))
        # Kept for backward: reading a sine is several times cheaper than taking it.
        sines = phase.new_empty(sum(sizes), channels)
        for step, part, sine in zip(steps, out.split(list(sizes)), sines.split(list(sizes)), strict=True):
            n = len(part)
            torch.add(phase[:n], frequency[:n], alpha=step, out=sine).sin_()
            torch.mul(vectors[:n, :channels], sine, out=part[:, :channels])
            part[:, channels:] = vectors[:n, channels:]
        ctx.save_for_backward(vectors, frequency, phase, sines)
        ctx.steps, ctx.sizes = steps, sizes
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        vectors, frequency, phase, sines = ctx.saved_tensors
        channels, sizes = frequency.size(1), list(ctx.sizes)
        grad_vectors, grad_frequency, grad_phase = map(torch.zeros_like, (vectors, frequency, phase))
        for step, part, sine in zip(ctx.steps, grad.split(sizes), sines.split(sizes), strict=True):
            n, moving = len(part), part[:, :channels]
            grad_vectors[:n, :channels].addcmul_(moving, sine)
            grad_vectors[:n, channels:] += part[:, channels:]
            by_sine = torch.add(phase[:n], frequency[:n], alpha=step).cos_().mul_(moving)
            grad_phase[:n] += by_sine
            grad_frequency[:n].add_(by_sine, alpha=step)
        # The amplitude is the same at all steps.
        for gradient in (grad_frequency, grad_phase):
            gradient *= vectors[:, :channels]
        return grad_vectors, grad_frequency, grad_phase, None, None
