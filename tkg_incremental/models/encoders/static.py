from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.models.encoder import Axis, Encoder


class StaticEncoder(Encoder):
    r"""Entities that do not depend on time, :math:`\mathbf{z}^t_i = \mathbf{z}_i`, nor do relations: the control.

    Also the base class of encoders in which time acts on relations only. A subclass lists its tables in
    :attr:`relation_tables` and implements :meth:`relation`.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors; even for complex vectors.
        generator: Source of the initial values.
    """

    #: The vectors of candidates are the same at all steps: one block of them serves a batch of mixed times.
    static_entities = True
    copies_last_step = True
    #: Names and axes of the tables for the vectors of relations. They have the width of the vectors.
    relation_tables: tuple[tuple[str, Axis], ...] = (("relation_vectors", "relation"),)
    #: Whether the first half of a vector is its real part and the second half its imaginary part.
    is_complex = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels)
        if self.is_complex:
            check_even(hidden_channels)
        self.add_table("entity_vectors", "entity", hidden_channels)
        self.add_relation_tables()
        self.reset_parameters(generator)

    def add_relation_tables(self) -> None:
        """Registers :attr:`relation_tables`; for tables of other widths, override it."""
        for name, axis in self.relation_tables:
            self.add_table(name, axis, self.hidden_channels)

    @property
    def vectors_by_entity(self) -> Tensor | None:
        return self.get_parameter("entity_vectors") if self._source is None and not self.is_sharded else None

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, _ = torch.broadcast_tensors(index, time)
        return self.rows("entity_vectors", index)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        vectors = self.rows("entity_vectors", order[: max(sizes)])  # one look-up for all steps
        return vectors if len(sizes) == 1 else torch.cat([vectors[:size] for size in sizes])


def check_even(hidden_channels: int) -> None:
    """Complex vectors have a real and an imaginary half."""
    if hidden_channels < 2 or hidden_channels % 2:
        raise ValueError(f"hidden_channels must be even and at least 2 for complex vectors (got {hidden_channels})")
