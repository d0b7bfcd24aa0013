"""Encoders: the vectors of entities and relations at a given time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.models.tables import EmbeddingTables
from tkg_incremental.ops import native
from tkg_incremental.ops.stepwise import StepTables


class Encoder(EmbeddingTables):
    """Computes vectors of entities and relations at a step from tables: the part of a model before its decoder.

    Args:
        num_entities: Number of rows of entity tables.
        num_relations: Number of rows of relation tables.
        num_steps: Number of rows of time tables.
        hidden_channels: Width of the vectors.
    """

    #: Whether the vectors of entities do not depend on time: one block of candidates serves a batch of mixed times.
    static_entities = False
    #: Whether the entities of a batch may be encoded together, on a large graph by :meth:`subset`.
    encodes_together = True
    #: The entity tables of :meth:`step_tables`; none if there is no kernel in C for the vectors of entities.
    formula_tables: tuple[str, ...] = ()
    #: Power of the moduli in the nuclear norm and in the temporal smoothness.
    penalty_power = 3

    def __init__(self, num_entities: int, num_relations: int, num_steps: int, hidden_channels: int) -> None:
        super().__init__(num_entities, num_relations, num_steps)
        self.hidden_channels = hidden_channels

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        """Vectors of entities at steps; ``index`` and ``time`` broadcast: ``[*] → [*, hidden_channels]``.

        ``index`` is for :meth:`rows`, and may count within a :meth:`subset`. A model that needs the ids themselves sets
        :attr:`encodes_together` to :obj:`False`.
        """
        index, _ = torch.broadcast_tensors(index, time)
        return self.rows("entity_vectors", index)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        """Vectors of relations at steps: ``[*] → [*, hidden_channels]``."""
        return self.rows("relation_vectors", index)

    def relation_factors(self, index: Tensor, time: Tensor) -> list[Tensor]:
        """The relation vectors that the nuclear norm penalizes: one per product that the score is a sum of."""
        return [self.relation(index, time)]

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """Vectors of the first ``sizes[i]`` entities of ``order`` at ``steps[i]``, step after step:
        ``[sum(sizes), hidden_channels]``. This is the bulk of training and evaluation: models may have a faster way.
        Of a :meth:`subset`, the order has all entities, and nothing is encoded afterwards.
        """
        if self.static_entities:
            vectors = self.rows("entity_vectors", order[: max(sizes)])  # one look-up for all steps
            return vectors if len(sizes) == 1 else torch.cat([vectors[:size] for size in sizes])
        if self.formula_tables and native.takes(*map(self.get_parameter, self.formula_tables)):
            tables, order = self._tables_of_known(order, sizes)
            return self.step_tables(torch.tensor(steps), tables).encode_known(order, sizes)
        return self.encode_steps(order, steps, sizes)

    def encode_steps(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """:meth:`encode_known` without kernels in C."""
        index = torch.cat([order[:size] for size in sizes])
        time = torch.tensor(steps, device=order.device).repeat_interleave(torch.tensor(sizes, device=order.device))
        return self.entity(index, time)

    def step_tables(self, steps: Tensor, tables: Sequence[Tensor]) -> StepTables:
        """The vectors of entities at steps ``[S]`` for the kernels, from rows of the :attr:`formula_tables`."""
        raise NotImplementedError

    def _tables_of_known(self, order: Tensor, sizes: Sequence[int]) -> tuple[list[Tensor], Tensor]:
        """The tables of the formula that contain the first ``max(sizes)`` entities of ``order``, and their positions:
        the tables themselves and the order, or the rows of these entities alone."""
        if self._subset:
            return [self._subset[name].vectors for name in self.formula_tables], order
        if self.uses_whole_tables(order, sizes):
            return [self.get_parameter(name) for name in self.formula_tables], order
        index = order[: max(sizes)]
        return [self.rows(name, index) for name in self.formula_tables], torch.arange(len(index), device=order.device)

    def uses_whole_tables(self, order: Tensor, sizes: Sequence[int]) -> bool:
        """Whether :meth:`encode_known` may read the entity tables directly, with gradients of the tables' size. That
        is so if such gradients are wanted, rows come from the tables, and ``order`` contains all entities."""
        entities = self.sizes["entity"]
        has_all = len(order) == entities or not torch.is_grad_enabled()
        return has_all and self.reads_tables and not self._is_sparse(max(sizes), entities)

    def extra_repr(self) -> str:
        return f"{', '.join(f'{k}={v}' for k, v in self.sizes.items())}, hidden_channels={self.hidden_channels}"
