"""Encoders: tables of vectors, and what they say of an entity or a relation at a given time."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tkg_incremental.ops.rows import look_up, look_up_few
from tkg_incremental.ops.shared import SharedTable

# One in so many rows of a table is few: to sort and sum them then costs less than a gradient of the table's size.
_FEW = 4

Axis = Literal["entity", "relation", "time"]


class RowSource(Protocol):
    """Gives rows of tables in the place of the tables themselves, as they were at an earlier time for instance."""

    def look_up(self, name: str, index: Tensor) -> Tensor: ...


class Encoder(nn.Module):
    """Base class: a set of tables, each indexed by one axis, and the vectors made from them.

    A subclass registers its tables with :meth:`add_table` and writes :meth:`entity` and :meth:`relation`.
    Because every table says which axis it indexes, initialisation, growth, regularisation and row-wise
    optimisation are written once for all encoders.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors that come out.
    """

    #: Whether the terms of a batch may have encoded together what they meet, by :meth:`among` on a large graph.
    encodes_together = True

    def __init__(self, num_entities: int, num_relations: int, num_steps: int, hidden_channels: int) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {"entity": num_entities, "relation": num_relations, "time": num_steps}
        self.hidden_channels = hidden_channels
        self.axes: dict[str, Axis] = {}
        self._unit_tables: set[str] = set()
        self._bounds: dict[str, float] = {}
        #: Row-wise optimisers set this, so that a gradient holds the rows a batch touched, if these are few.
        self.sparse_gradients = False
        self._source: RowSource | None = None

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        """Vectors of entities at steps; ``index`` and ``time`` broadcast: ``[*] → [*, hidden_channels]``.

        ``index`` is for :meth:`rows`, which may be those of some entities alone (:meth:`among`): whoever needs to know
        entities by their number sets :attr:`encodes_together` to :obj:`False`.
        """
        raise NotImplementedError

    def known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """Vectors of the first ``sizes[i]`` entities of ``order`` at ``steps[i]``, one step after the other:
        ``[sum(sizes), hidden_channels]``. The bulk of training and evaluation: encoders may know a shorter way."""
        index = torch.cat([order[:size] for size in sizes])
        time = torch.tensor(steps, device=order.device).repeat_interleave(torch.tensor(sizes, device=order.device))
        return self.entity(index, time)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        """Vectors of relations at steps: ``[*] → [*, hidden_channels]``."""
        raise NotImplementedError

    def add_table(self, name: str, axis: Axis, width: int, unit: bool = False, bound: float | None = None) -> None:
        """Registers a table with one row per entity, relation or step.

        Args:
            name: Name of the parameter.
            axis: What it has rows for.
            width: Width of a row.
            unit: Whether rows have length one.
            bound: Initial values lie between plus and minus this; by default Glorot's, which depends on the shape.
        """
        self.register_parameter(name, nn.Parameter(torch.empty(self.sizes[axis], width)))
        self.axes[name] = axis
        if unit:
            self._unit_tables.add(name)
        if bound is not None:
            self._bounds[name] = bound

    @torch.no_grad()
    def restore_units(self, name: str, index: Tensor | None = None) -> None:
        """Gives rows of a table, by default all, their length of one again after an update, if they are to have it."""
        if name in self._unit_tables:
            table = self.tables()[name]
            if index is None:
                F.normalize(table, dim=-1, out=table)
            else:
                table[index] = self.as_kept(name, table[index])

    def as_kept(self, name: str, rows: Tensor) -> Tensor:
        """Rows ``[n, width]`` as the table would have them: with a length of one, if they are to have it."""
        return F.normalize(rows, dim=-1) if name in self._unit_tables else rows

    def rows(self, name: str, index: Tensor) -> Tensor:
        """Rows of a table, ``[*] → [*, width]``."""
        if self._source is not None:
            return self._source.look_up(name, index)
        table = self.get_parameter(name)
        if self._are_few(index.numel(), len(table)):
            return F.embedding(index, table, sparse=True)
        return look_up(table, index)

    def distinct_rows(self, name: str, index: Tensor) -> Tensor:
        """:meth:`rows` of distinct entities by ascending number."""
        table = self.get_parameter(name)
        if self._source is None and self._are_few(len(index), len(table)):
            return look_up_few(table, index)
        return self.rows(name, index)

    def _are_few(self, rows: int, of: int) -> bool:
        return self.sparse_gradients and rows * _FEW < of

    def tables_of_known(self, names: Sequence[str], order: Tensor, sizes: Sequence[int]) -> tuple[list[Tensor], Tensor]:
        """Entity tables in which the first ``max(sizes)`` entities of ``order`` stand, and where: the tables
        themselves with the order, or the rows of these entities alone."""
        if isinstance(self._source, SomeRows):
            return [self._source.rows[name].vectors for name in names], order
        if self.takes_whole_tables(order, sizes):
            return [self.get_parameter(name) for name in names], order
        index = order[: max(sizes)]
        return [self.rows(name, index) for name in names], torch.arange(len(index), device=order.device)

    def takes_whole_tables(self, order: Tensor, sizes: Sequence[int]) -> bool:
        """Whether :meth:`known` may go to the entity tables themselves, with gradients of the tables' size: these are
        wanted, the rows are those of the tables, and for gradients the order has all of them."""
        entities = self.sizes["entity"]
        has_all = len(order) == entities or not torch.is_grad_enabled()
        return has_all and self._source is None and not self._are_few(max(sizes), entities)

    def with_rows_of(self, source: RowSource) -> Encoder:
        """This encoder with rows from elsewhere; it shares the tables."""
        twin = copy.copy(self)
        twin._source = source
        return twin

    def among(self, entities: Tensor) -> Encoder:
        """This encoder for some distinct entities, by ascending number, ``[n]``, which it knows by their places among
        these. Their rows are looked up here, once, whatever is encoded of them; :meth:`known` comes last, with an order
        of all of them."""
        return self.with_rows_of(SomeRows(self, entities))

    def tables(self, axis: Axis | None = None) -> dict[str, nn.Parameter]:
        """All tables, or those of one axis, by name."""
        return {name: self.get_parameter(name) for name, a in self.axes.items() if axis in (None, a)}

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for name, axis in self.axes.items():
            self.initialise(axis, torch.arange(self.sizes[axis]), generator, only=name)

    @torch.no_grad()
    def initialise(
        self, axis: Axis, index: Tensor, generator: torch.Generator | None = None, only: str | None = None
    ) -> None:
        """Draws rows anew: uniformly within Glorot's bound with the gain of a ReLU, or the table's own."""
        for name, table in self.tables(axis).items():
            if only in (None, name):
                bound = self.initial_bound(name)
                fresh = torch.empty(len(index), table.size(1)).uniform_(-bound, bound, generator=generator)
                self.put(name, index, fresh)

    def initial_bound(self, name: str) -> float:
        """Initial values of a table lie between plus and minus this."""
        if name in self._bounds:
            return self._bounds[name]
        rows, width = self.sizes[self.axes[name]], self.get_parameter(name).size(1)
        return nn.init.calculate_gain("relu") * math.sqrt(6.0 / (rows + width))

    @torch.no_grad()
    def put(self, name: str, index: Tensor, rows: Tensor) -> None:
        """Gives rows of a table other values, ``[n] ← [n, width]``."""
        table = self.tables()[name]
        table[index.to(table.device)] = self.as_kept(name, rows).to(table)

    @torch.no_grad()
    def expand(
        self,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Makes room for new entities, relations or steps; known rows keep their values."""
        wanted: dict[Axis, int | None] = {"entity": num_entities, "relation": num_relations, "time": num_steps}
        for axis, size in wanted.items():
            old = self.sizes[axis]
            if size is None or size == old:
                continue
            if size < old:
                raise ValueError(f"a model cannot shrink: {axis} rows must be at least {old} (got {size})")
            self.sizes[axis] = size
            for name, table in self.tables(axis).items():
                grown = torch.cat([table, table.new_zeros(size - old, table.size(1))])
                self.register_parameter(name, nn.Parameter(grown, requires_grad=table.requires_grad))
            self.initialise(axis, torch.arange(old, size), generator)

    def extra_repr(self) -> str:
        return f"{', '.join(f'{k}={v}' for k, v in self.sizes.items())}, hidden_channels={self.hidden_channels}"


class SomeRows:
    """Rows of some entities, looked up once, and by their places among these from then on.

    Args:
        encoder: Where they are looked up.
        entities: ``[n]`` distinct and ascending.
    """

    def __init__(self, encoder: Encoder, entities: Tensor) -> None:
        self._encoder = encoder
        names = [name for name, axis in encoder.axes.items() if axis == "entity"]
        self.rows = {name: SharedTable(encoder.distinct_rows(name, entities)) for name in names}

    def look_up(self, name: str, index: Tensor) -> Tensor:
        return self.rows[name].rows(index) if name in self.rows else self._encoder.rows(name, index)
