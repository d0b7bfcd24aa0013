"""Encoders: tables with a row per entity, relation or step, and the vectors at a given time that are made of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tkg_incremental.ops import native
from tkg_incremental.ops.rows import look_up, with_rows
from tkg_incremental.ops.stepwise import StepTables
from tkg_incremental.optim.rowwise import gradient_norm, sum_tables
from tkg_incremental.optim.touched_rows import TouchedRows

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's from Python 3.11 on

# Look-ups of less than this share of a table get sparse gradients: to sort and sum a few rows costs less than a
# gradient of the table's size.
_SPARSE_SHARE = 1 / 4

Axis = Literal["entity", "relation", "time"]
#: Provides rows of a table, by its name, in place of the table itself, for instance their values before a step.
RowSource = Callable[[str, Tensor], Tensor]


class Encoder(nn.Module):
    """Computes vectors of entities and relations at a step from tables: the part of a model before its decoder.

    Because every table has an axis, initialization, growth, regularization and row-wise optimization are implemented
    once for all models.

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

    #: Whether the entity tables are divided among processes.
    is_sharded = False
    #: Whether the rows of a new step start as a copy of the last step's rows, or are drawn.
    copies_last_step = True

    def __init__(self, num_entities: int, num_relations: int, num_steps: int, hidden_channels: int) -> None:
        super().__init__()
        self.hidden_channels = hidden_channels
        self.sizes: dict[str, int] = {"entity": num_entities, "relation": num_relations, "time": num_steps}
        self.axes: dict[str, Axis] = {}
        self._unit_tables: set[str] = set()
        self._bounds: dict[str, float] = {}
        #: Row-wise optimizers set this, so that gradients of few rows are sparse.
        self.sparse_gradients = False
        self._source: RowSource | None = None
        self._subset: dict[str, Tensor] = {}

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

    def tables(self, axis: Axis | None = None) -> dict[str, nn.Parameter]:
        """All tables, or those of one axis, by name."""
        return {name: self.get_parameter(name) for name, a in self.axes.items() if axis in (None, a)}

    # Vectors ------------------------------------------------------------------------------------------

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
            return [self._subset[name] for name in self.formula_tables], order
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

    # Rows ----------------------------------------------------------------------------------------------

    def rows(self, name: str, index: Tensor) -> Tensor:
        """Rows of a table, ``[*] → [*, width]``."""
        if name in self._subset:
            self._subset[name], rows = with_rows(self._subset[name], index)
            return rows
        if self._source is not None:
            return self._source(name, index)
        table = self.get_parameter(name)
        if self._is_sparse(index.numel(), len(table)):
            return F.embedding(index, table, sparse=True)
        return look_up(table, index)

    @property
    def reads_tables(self) -> bool:
        """Whether rows are those of the tables, addressed by their ids."""
        return self._source is None and not self._subset

    def _is_sparse(self, rows: int, of: int) -> bool:
        return self.sparse_gradients and rows < of * _SPARSE_SHARE

    def with_rows_of(self, source: RowSource) -> Self:
        """This module with rows from another source; it shares the tables."""
        twin = copy.copy(self)
        twin._source = source
        return twin

    def subset(self, entities: Tensor) -> Self:
        """This module for distinct entities with ascending ids, ``[n]``, addressed by their positions. Their rows are
        looked up once."""
        twin = copy.copy(self)
        names = [name for name, axis in self.axes.items() if axis == "entity"]
        twin._subset = {name: self.rows(name, entities) for name in names}
        return twin

    # Values --------------------------------------------------------------------------------------------

    def reset_parameters(self, seed: int = 0) -> None:
        """Draws the initial values of all tables."""
        generator = torch.Generator().manual_seed(seed)
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

    def initialize_new(self, axis: Axis, first: int, generator: torch.Generator | None = None) -> None:
        """Initial values of the rows from ``first`` on, which are new."""
        if axis == "time":
            for step in range(first, self.sizes[axis]):
                self.initialize_step(step, generator)
        elif first < self.sizes[axis]:
            self.initialize(axis, torch.arange(first, self.sizes[axis]), generator)

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

    @torch.no_grad()
    def expand_tables(self, sizes: dict[Axis, int | None], generator: torch.Generator | None = None) -> None:
        """Makes room for new rows, by axis; existing rows keep their values."""
        for axis, size in sizes.items():
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

    # What differs if the entity tables are divided among processes --------------------------------------

    def replicated_tables(self) -> dict[str, nn.Parameter]:
        """The tables that every process holds whole: their gradients are averaged."""
        return self.tables()

    def former_rows(self, touched: TouchedRows) -> RowSource:
        """Rows as they were before an optimizer moved them."""
        return touched.look_up

    def row_ids(self, name: str, index: Tensor) -> Tensor:
        """Ids of the rows of a table, ``[n] → [n]``."""
        return index

    def gradient_norm(self, gradients: dict[str, Tensor]) -> Tensor:
        """The norm of the whole gradient from its touched rows by table."""
        return gradient_norm(gradients)

    def sum_tables(self, values: dict[str, Tensor]) -> Tensor:
        """The sum of a number per table."""
        return sum_tables(values)

    def extra_repr(self) -> str:
        return f"{', '.join(f'{k}={v}' for k, v in self.sizes.items())}, hidden_channels={self.hidden_channels}"
