"""What encoders share whose entities do not depend on time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.models.encoder import Encoder


class StaticEntityEncoder(Encoder):
    r"""Base class of encoders in which time acts on relations only, :math:`\mathbf{z}^t_i = \mathbf{z}_i`.

    A subclass registers its tables, ``entity_vectors`` among them, and writes :meth:`relation`.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
    """

    #: The vectors of candidates are the same at all steps: one block of them serves a batch of mixed times.
    static_entities = True

    #: A step that is added starts with the row of the last step before it.
    copies_last_step = True

    @property
    def vectors_by_entity(self) -> Tensor | None:
        return self.get_parameter("entity_vectors") if self._source is None and not self.is_sharded else None

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, _ = torch.broadcast_tensors(index, time)
        return self.rows("entity_vectors", index)

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        vectors = self.rows("entity_vectors", order[: max(sizes)])  # one look-up for all steps
        return vectors if len(sizes) == 1 else torch.cat([vectors[:size] for size in sizes])

    def relation_factors(self, index: Tensor, time: Tensor) -> list[Tensor]:
        """The factors of a relation at steps that :func:`~tkg_incremental.strategies.regularization.n3` penalises,
        each ``[*, hidden_channels]``. By default the relation's vector."""
        return [self.relation(index, time)]


def check_even(hidden_channels: int) -> None:
    """Complex vectors have a real and an imaginary half."""
    if hidden_channels < 2 or hidden_channels % 2:
        raise ValueError(f"hidden_channels must be even and at least 2 for complex vectors (got {hidden_channels})")


def complex_product(a: Tensor, b: Tensor) -> Tensor:
    r"""The element-wise product of complex vectors whose first half is real and whose second half is imaginary.

    Args:
        a: ``[*, d]``.
        b: ``[*, d]``; ``a`` and ``b`` broadcast.

    Returns:
        ``[*, d]``.

    >>> complex_product(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))  # (1 + 2i)(3 + 4i)
    tensor([-5., 10.])
    """
    (a_re, a_im), (b_re, b_im) = a.chunk(2, dim=-1), b.chunk(2, dim=-1)
    return torch.cat([a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re], dim=-1)
