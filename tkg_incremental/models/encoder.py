"""Encoders: tables of parameters, and the vectors of entities and relations at a given time."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tkg_incremental.ops import native
from tkg_incremental.ops.rows import look_up, look_up_few
from tkg_incremental.ops.shared import SharedTable
from tkg_incremental.ops.stepwise import Formula, StepTables
from tkg_incremental.optim.rowwise import gradient_norm, sum_tables
from tkg_incremental.optim.touched_rows import TouchedRows

# Look-ups of less than this share of a table get sparse gradients: to sort and sum a few rows costs less than a
# gradient of the table's size.
_SPARSE_SHARE = 1 / 4

Axis = Literal["entity", "relation", "time"]


class RowSource(Protocol):
    """Provides rows of tables in place of the tables themselves, for instance their values before a step."""

    def look_up(self, name: str, index: Tensor) -> Tensor: ...


class Encoder(nn.Module):
    """Base class: a set of tables, each indexed by one axis, and the vectors computed from them.

    A subclass registers its tables with :meth:`add_table` and implements :meth:`entity` and :meth:`relation`.
    Because every table has an axis, initialization, growth, regularization and row-wise optimization are implemented
    once for all encoders.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
    """

    #: Whether the entities of a batch may be encoded together, on a large graph by :meth:`subset`.
    encodes_together = True
    #: Whether the entity tables are divided among processes.
    is_sharded = False
    #: Whether the vectors of entities do not depend on time.
    static_entities = False
    #: The entity tables of :meth:`formula`; none if there is no kernel in C for the vectors of entities.
    formula_tables: tuple[str, ...] = ()
    #: Power of the moduli in the nuclear norm and in the temporal smoothness.
    penalty_power = 3
    #: Whether the rows of a new step start as a copy of the last step's rows.
    copies_last_step = False

    def __init__(self, num_entities: int, num_relations: int, num_steps: int, hidden_channels: int) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {"entity": num_entities, "relation": num_relations, "time": num_steps}
        self.hidden_channels = hidden_channels
        self.axes: dict[str, Axis] = {}
        self._unit_tables: set[str] = set()
        self._bounds: dict[str, float] = {}
        #: Row-wise optimizers set this, so that gradients of few rows are sparse.
        self.sparse_gradients = False
        self._source: RowSource | None = None

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        """Vectors of entities at steps; ``index`` and ``time`` broadcast: ``[*] → [*, hidden_channels]``.

        ``index`` is for :meth:`rows`, and may count within a :meth:`subset`. An encoder that needs the ids themselves
        sets :attr:`encodes_together` to :obj:`False`.
        """
        raise NotImplementedError

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        """Vectors of relations at steps: ``[*] → [*, hidden_channels]``."""
        raise NotImplementedError

    def relation_factors(self, index: Tensor, time: Tensor) -> list[Tensor]:
        """The relation vectors that the nuclear norm penalizes: one per product that the score is a sum of."""
        return [self.relation(index, time)]

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """Vectors of the first ``sizes[i]`` entities of ``order`` at ``steps[i]``, step after step:
        ``[sum(sizes), hidden_channels]``. This is the bulk of training and evaluation: encoders may have a faster way.
        """
        index = torch.cat([order[:size] for size in sizes])
        time = torch.tensor(steps, device=order.device).repeat_interleave(torch.tensor(sizes, device=order.device))
        return self.entity(index, time)

    def formula(self, steps: Tensor) -> Formula:
        """How the kernels compute the vectors of entities at steps ``[S]`` from :attr:`formula_tables`."""
        raise NotImplementedError

    def add_table(self, name: str, axis: Axis, width: int, unit: bool = False, bound: float | None = None) -> None:
        """Registers a table with one row per entity, relation or step.

        Args:
            name: Name of the parameter.
            axis: What it has rows for.
            width: Width of a row.
            unit: Whether rows have length one.
            bound: Initial values are drawn between plus and minus this; by default Glorot's bound.
        """
        self.register_parameter(name, nn.Parameter(torch.empty(self.sizes[axis], width)))
        self.axes[name] = axis
        if unit:
            self._unit_tables.add(name)
        if bound is not None:
            self._bounds[name] = bound

    def constrain(self, name: str, rows: Tensor) -> Tensor:
        """Rows ``[n, width]`` of a table projected onto its constraint: length one, if the table has unit rows."""
        return F.normalize(rows, dim=-1) if name in self._unit_tables else rows

    @torch.no_grad()
    def constrain_table(self, name: str, index: Tensor | None = None) -> None:
        """Applies :meth:`constrain` to rows of a table in place, by default to all."""
        if name in self._unit_tables:
            table = self.tables()[name]
            if index is None:
                F.normalize(table, dim=-1, out=table)
            else:
                table[index] = self.constrain(name, table[index])

    def rows(self, name: str, index: Tensor) -> Tensor:
        """Rows of a table, ``[*] → [*, width]``."""
        if self._source is not None:
            return self._source.look_up(name, index)
        table = self.get_parameter(name)
        if self._is_sparse(index.numel(), len(table)):
            return F.embedding(index, table, sparse=True)
        return look_up(table, index)

    def distinct_rows(self, name: str, index: Tensor) -> Tensor:
        """:meth:`rows` for distinct, ascending indices."""
        table = self.get_parameter(name)
        if self._source is None and self._is_sparse(len(index), len(table)):
            return look_up_few(table, index)
        return self.rows(name, index)

    def _is_sparse(self, rows: int, of: int) -> bool:
        return self.sparse_gradients and rows < of * _SPARSE_SHARE

    def tables_of_known(self, names: Sequence[str], order: Tensor, sizes: Sequence[int]) -> tuple[list[Tensor], Tensor]:
        """Entity tables that contain the first ``max(sizes)`` entities of ``order``, and their positions: the tables
        themselves and the order, or the rows of these entities alone."""
        if isinstance(self._source, SubsetRows):
            return [self._source.rows[name].vectors for name in names], order
        if self.uses_whole_tables(order, sizes):
            return [self.get_parameter(name) for name in names], order
        index = order[: max(sizes)]
        return [self.rows(name, index) for name in names], torch.arange(len(index), device=order.device)

    @property
    def vectors_by_entity(self) -> Tensor | None:
        """A table ``[num_entities, hidden_channels]`` of the vectors of entities, if they are parameters that do not
        depend on time."""
        return None

    def _known_by_kernel(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor | None:
        """:meth:`encode_known` by the kernels; :obj:`None` if they cannot do it."""
        if not native.takes(*map(self.get_parameter, self.formula_tables)):
            return None
        tables, order = self.tables_of_known(self.formula_tables, order, sizes)
        return StepTables(self.formula(torch.tensor(steps)), tables).encode_known(order, sizes)

    def uses_whole_tables(self, order: Tensor, sizes: Sequence[int]) -> bool:
        """Whether :meth:`encode_known` may read the entity tables directly, with gradients of the tables' size. That
        is so if such gradients are wanted, rows come from the tables, and ``order`` contains all entities."""
        entities = self.sizes["entity"]
        has_all = len(order) == entities or not torch.is_grad_enabled()
        return has_all and self._source is None and not self._is_sparse(max(sizes), entities)

    def with_rows_of(self, source: RowSource) -> Encoder:
        """This encoder with rows from another source; it shares the tables."""
        twin = copy.copy(self)
        twin._source = source
        return twin

    def subset(self, entities: Tensor) -> Encoder:
        """This encoder for distinct entities with ascending ids, ``[n]``, addressed by their positions. Their rows are
        looked up once. :meth:`encode_known` must come last, with an order of all of them."""
        return self.with_rows_of(SubsetRows(self, entities))

    def tables(self, axis: Axis | None = None) -> dict[str, nn.Parameter]:
        """All tables, or those of one axis, by name."""
        return {name: self.get_parameter(name) for name, a in self.axes.items() if axis in (None, a)}

    # What differs if the entity tables are divided among processes --------------------------------------

    def replicated_tables(self) -> dict[str, nn.Parameter]:
        """The tables that every process holds whole: their gradients are averaged."""
        return self.tables()

    def make_touched_rows(self) -> TouchedRows:
        """Keeps former values of the rows that an optimizer moves."""
        return TouchedRows(self.tables())

    def row_ids(self, name: str, index: Tensor) -> Tensor:
        """Ids of the rows of a table, ``[n] → [n]``."""
        return index

    def gradient_norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """The norm of the whole gradient from its touched rows by table."""
        return gradient_norm(gradients)

    def sum_tables(self, values: dict[str, Tensor]) -> Tensor:
        """The sum of a number per table."""
        return sum_tables(values)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for name, axis in self.axes.items():
            # A model that is loaded has no values yet, and drawing them on the meta device would import sympy.
            if not self.get_parameter(name).is_meta:
                self.initialize(axis, torch.arange(self.sizes[axis]), generator, only=name)

    @torch.no_grad()
    def initialize(
        self, axis: Axis, index: Tensor, generator: torch.Generator | None = None, only: str | None = None
    ) -> None:
        """Draws rows uniformly within Glorot's bound with the gain of a ReLU, or within the table's own bound."""
        for name, table in self.tables(axis).items():
            if only in (None, name):
                bound = self.initial_bound(name)
                fresh = torch.empty(len(index), table.size(1)).uniform_(-bound, bound, generator=generator)
                self.put(name, index, fresh)

    @torch.no_grad()
    def initialize_step(self, step: int, generator: torch.Generator | None = None) -> None:
        """Initial values of a step's rows: a copy of the step before, if :attr:`copies_last_step`, or drawn."""
        if not self.copies_last_step or step == 0:
            self.initialize("time", torch.tensor([step]), generator)
            return
        for name, table in self.tables("time").items():
            self.put(name, torch.tensor([step]), table[step - 1 : step].clone())

    def initial_bound(self, name: str) -> float:
        """Initial values of a table are drawn between plus and minus this."""
        if name in self._bounds:
            return self._bounds[name]
        rows, width = self.sizes[self.axes[name]], self.get_parameter(name).size(1)
        return nn.init.calculate_gain("relu") * math.sqrt(6.0 / (rows + width))

    @torch.no_grad()
    def put(self, name: str, index: Tensor, rows: Tensor) -> None:
        """Writes rows of a table, ``[n] ← [n, width]``."""
        table = self.tables()[name]
        table[index.to(table.device)] = self.constrain(name, rows).to(table)

    @torch.no_grad()
    def expand(
        self,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Makes room for new entities, relations or steps; existing rows keep their values."""
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
            self.initialize_new(axis, old, generator)

    def initialize_new(self, axis: Axis, first: int, generator: torch.Generator | None = None) -> None:
        """Initial values of the rows from ``first`` on, which are new."""
        if axis == "time":
            for step in range(first, self.sizes[axis]):
                self.initialize_step(step, generator)
        elif first < self.sizes[axis]:
            self.initialize(axis, torch.arange(first, self.sizes[axis]), generator)

    def extra_repr(self) -> str:
        return f"{', '.join(f'{k}={v}' for k, v in self.sizes.items())}, hidden_channels={self.hidden_channels}"


class SubsetRows:
    """Rows of some entities, looked up once and addressed by position from then on.

    Args:
        encoder: The encoder to look them up in.
        entities: ``[n]`` distinct and ascending.
    """

    def __init__(self, encoder: Encoder, entities: Tensor) -> None:
        self._encoder = encoder
        names = [name for name, axis in encoder.axes.items() if axis == "entity"]
        self.rows = {name: SharedTable(encoder.distinct_rows(name, entities)) for name in names}

    def look_up(self, name: str, index: Tensor) -> Tensor:
        return self.rows[name].rows(index) if name in self.rows else self._encoder.rows(name, index)
