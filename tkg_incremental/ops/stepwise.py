"""Vectors of entities at steps that are computed from their tables where they are used, one step after the other.

A table of all (entity, step) pairs of a batch does not fit into the cache. The kernels compute the vectors of one step,
use them and go on to the next; the gradients go straight into those of the entity tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.ops import native
from tkg_incremental.ops.scores import KINDS, Similarity

_FORMULAS = {"diachronic": 0, "hyperplane": 1}
# Number of parts of a sum over entities, which threads divide; as in the kernels.
PARTS = 16


class Formula(NamedTuple):
    """How the vector of an entity at a step follows from its rows.

    Args:
        name: ``"diachronic"`` or ``"hyperplane"``.
        when: ``[S]`` the steps.
        normals: ``[S, d]`` unit normals of the steps for hyperplanes.
        columns: ``[d]`` for each column of a vector, its column in the order of the kernels; :obj:`None` if the orders
            are the same.
    """

    name: str
    when: Tensor
    normals: Tensor | None = None
    columns: Tensor | None = None


class StepTables:
    """Entity tables and the vectors of their rows at some steps, numbered from 0.

    As in :class:`~tkg_incremental.ops.shared.SharedTable` each use hands the tables on to the next, so that all
    gradients are summed in one buffer per table.

    Args:
        formula: How vectors follow from rows.
        tables: ``[N, d]``, for diachronic vectors also frequencies and phases, ``[N, c]``.
    """

    def __init__(self, formula: Formula, tables: Sequence[Tensor]) -> None:
        normals = () if formula.normals is None else (formula.normals.contiguous(),)
        self._formula, self._tensors = formula, (*(table.contiguous() for table in tables), *normals)
        self._kernel = _FORMULAS[formula.name], formula.when.to(torch.float)

    def vectors(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """Vectors of rows at steps, pair by pair, ``2 × [M] → [M, d]``."""
        *tensors, vectors = _Pairs.apply(self._kernel, rows.contiguous(), numbers.contiguous(), *self._tensors)
        self._tensors = tuple(tensors)
        columns = self._formula.columns
        return vectors if columns is None else vectors.index_select(1, columns)

    def sampled_scores(self, query: Tensor, samples: StepSamples, similarity: Similarity) -> Tensor:
        """Each query against its own list of rows at its step, ``[Q, d] → [Q, K]``."""
        *tensors, scores = _Scores.apply(
            self._kernel, KINDS[similarity], samples, self._in_order(query).contiguous(), *self._tensors
        )
        self._tensors = tuple(tensors)
        return scores

    def encode_known(self, order: Tensor, sizes: Sequence[int]) -> Tensor:
        """Vectors of the first ``sizes[s]`` rows of ``order`` at step ``s``, step after step, ``[sum(sizes), d]``."""
        vectors = _Known.apply(self._kernel, order.contiguous(), torch.tensor(sizes), *self._tensors)
        columns = self._formula.columns
        return vectors if columns is None else vectors.index_select(1, columns)

    def known(self, order: Tensor) -> KnownAtSteps:
        """The first rows of ``order`` as candidates of one-vs-all losses, which must be the last use of the tables."""
        return KnownAtSteps(self._kernel, order.contiguous(), self._tensors, self._in_order)

    def _in_order(self, query: Tensor) -> Tensor:
        """Query vectors ``[*, d]`` with their columns in the order of the kernels."""
        columns = self._formula.columns
        return query if columns is None else query.index_select(-1, torch.argsort(columns))


class StepSamples:
    """Lists of rows, each at one step, and the queries that they belong to.

    Args:
        index: ``[L, K]`` rows of the tables.
        numbers: ``[L]`` the number of each list's step.
        steps: Number of steps.
        rows: Number of rows of the tables.
        list_of_query: ``[Q]`` the list of each query; :obj:`None` if every query has its own.
    """

    def __init__(
        self, index: Tensor, numbers: Tensor, steps: int, rows: int, list_of_query: Tensor | None = None
    ) -> None:
        index, numbers = index.contiguous(), numbers.contiguous()
        self.shape = (len(index) if list_of_query is None else len(list_of_query), index.size(1))
        lists, starts = _by_step(numbers, steps)
        slots, used, counts = torch.empty_like(index), torch.empty_like(index), torch.zeros_like(starts)
        native.call(
            "assign_slots",
            *(index, lists, starts, steps, index.size(1)),
            *(torch.full((rows,), -1), slots, used, counts),
        )
        queries, query_starts = lists, starts
        if list_of_query is not None:
            list_of_query = list_of_query.contiguous()
            numbers = numbers.index_select(0, list_of_query)
            queries, query_starts = _by_step(numbers, steps)
        # Kept, because the kernels get their addresses.
        self._tensors = index, slots, used, counts, starts, list_of_query, queries, query_starts, numbers
        #: What the kernels take: addresses and sizes.
        self.given = _addresses(*self._tensors, steps, index.size(1))
        #: The largest number of distinct rows of a step.
        self.most_rows = int(counts.max())

    def scratch(self, query: Tensor) -> Tensor:
        """Room for the vectors of one step per thread."""
        return query.new_empty(torch.get_num_threads(), self.most_rows, query.size(1))


def _by_step(numbers: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Indices sorted by step, and where each step begins among them, ``[steps + 1]``."""
    counts = torch.bincount(numbers, minlength=steps)
    return torch.argsort(numbers, stable=True), torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _addresses(*given: Tensor | int | None) -> Tensor:
    return torch.tensor([each.data_ptr() if isinstance(each, Tensor) else each or 0 for each in given])


def _formula(kernel: tuple[int, Tensor], tensors: Sequence[Tensor]) -> Tensor:
    kind, when = kernel
    e = tensors[0]
    if kind == _FORMULAS["hyperplane"]:
        return _addresses(kind, e.size(1), 0, e, None, None, when, tensors[1])
    return _addresses(kind, e.size(1), tensors[1].size(1), *tensors, when, None)


class StepGradients:
    """Gradients of the tables and normals, which kernels add to.

    Args:
        tensors: The tables, and the normals if there are any.
        given: Gradients that others have left; taken over, or :obj:`None` for zeros.
    """

    def __init__(self, tensors: Sequence[Tensor], given: Sequence[Tensor | None] = ()) -> None:
        given = given or [None] * len(tensors)
        self.values = [
            torch.zeros_like(tensor) if gradient is None else gradient.contiguous()
            for tensor, gradient in zip(tensors, given, strict=True)
        ]
        #: Addresses of the gradients of the tables.
        self.tables = _addresses(*self.values)
        self.normals: Tensor | None = self.values[1] if len(tensors) == 2 else None


class KnownAtSteps(NamedTuple):
    """The first entities of an order at a step, for one step after the other.

    Args:
        kernel: Formula and times.
        order: ``[n]`` rows of the tables.
        tensors: The tables, and the normals if there are any.
        in_order: Brings the columns of queries ``[*, d]`` into the order of the kernels.
    """

    kernel: tuple[int, Tensor]
    order: Tensor
    tensors: Sequence[Tensor]
    in_order: Callable[[Tensor], Tensor]

    def walk(self, tensors: Sequence[Tensor], groups: Sequence[Any]) -> StepWalk:
        return StepWalk(self.kernel, self.order, tensors, max(group.width for group in groups))


class StepWalk:
    """Vectors and gradients of the first entities of an order at one step after the other, in one buffer.

    Args:
        kernel: Formula and times.
        order: ``[n]`` rows of the tables.
        tensors: The tables, and the normals if there are any.
        most: The largest number of entities.
    """

    def __init__(self, kernel: tuple[int, Tensor], order: Tensor, tensors: Sequence[Tensor], most: int) -> None:
        self._given, self._order = _formula(kernel, tensors), order
        self._out = StepGradients(tensors)
        self.gradients = self._out.values
        self._buffers = tensors[0].new_empty(2, most, tensors[0].size(1))
        self._parts = tensors[0].new_empty(PARTS, tensors[0].size(1))

    def enter(self, start: int, size: int) -> tuple[Tensor, Tensor, bool]:
        vectors, gradient = self._buffers[:, :size]
        native.call("vectors_at_steps", self._given, self._order, torch.tensor([size]), start, 1, vectors)
        return vectors, gradient, False

    def leave(self, start: int, size: int) -> None:
        gradient, normals = self._buffers[1, :size], self._out.normals
        if normals is not None:
            self._parts.zero_()
        native.call(
            "gradients_at_steps",
            *(self._given, self._order, torch.tensor([size]), start, 1, gradient, self._out.tables, self._parts),
        )
        if normals is not None:
            normals[start] += self._parts.sum(0)


class _Known(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: tuple[int, Tensor], order: Tensor, sizes: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(order, sizes, *tensors)
        ctx.kernel = kernel
        out = tensors[0].new_empty(int(sizes.sum()), tensors[0].size(1))
        native.call("vectors_at_steps", _formula(kernel, tensors), order, sizes, 0, len(sizes), out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        order, sizes, *tensors = ctx.saved_tensors
        out = StepGradients(tensors)
        parts = grad.new_zeros(PARTS, len(sizes), grad.size(1))
        native.call(
            "gradients_at_steps",
            *(_formula(ctx.kernel, tensors), order, sizes, 0, len(sizes), grad.contiguous(), out.tables, parts),
        )
        if out.normals is not None:
            out.normals += parts.sum(0)
        return None, None, None, *out.values


class _Pairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernel: tuple[int, Tensor], rows: Tensor, numbers: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(rows, numbers, *tensors)
        ctx.set_materialize_grads(False)
        ctx.kernel = kernel
        vectors = tensors[0].new_empty(len(rows), tensors[0].size(1))
        native.call("vectors_of_pairs", _formula(kernel, tensors), rows, numbers, len(rows), vectors)
        return *tensors, vectors

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        *given, grad = grads
        if grad is None:
            return None, None, None, *given
        rows, numbers, *tensors = ctx.saved_tensors
        out = StepGradients(tensors, given)
        native.call(
            "gradients_by_pairs",
            *(_formula(ctx.kernel, tensors), rows, numbers, len(rows), grad.contiguous(), out.tables, out.normals),
        )
        return None, None, None, *out.values


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernel: tuple[int, Tensor], similarity: int, samples: StepSamples, query: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(query, *tensors)
        ctx.set_materialize_grads(False)
        ctx.given = kernel, similarity, samples
        scores = query.new_empty(samples.shape)
        native.call(
            "scores_at_steps",
            *(similarity, _formula(kernel, tensors), samples.given, query, scores),
            *(samples.scratch(query), samples.most_rows),
        )
        return *tensors, scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        *given, grad = grads
        if grad is None:
            return None, None, None, None, *given
        query, *tensors = ctx.saved_tensors
        kernel, similarity, samples = ctx.given
        out, grad_query, width = StepGradients(tensors, given), torch.empty_like(query), query.size(1)
        places = torch.zeros(torch.get_num_threads(), len(tensors[0]), dtype=torch.long)
        normals = None if out.normals is None else query.new_zeros(PARTS, *out.normals.shape)
        native.call(
            "gradients_of_scores_at_steps",
            *(similarity, _formula(kernel, tensors), samples.given, query, grad.contiguous(), grad_query),
            *(out.tables, normals, samples.scratch(query), samples.most_rows, places, len(tensors[0])),
            *(places.new_empty(samples.shape), query.new_empty(PARTS, 2, width)),
        )
        if out.normals is not None and normals is not None:
            out.normals += normals.sum(0)
        return None, None, None, grad_query, *out.values
