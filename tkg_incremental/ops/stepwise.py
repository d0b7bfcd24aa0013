"""Vectors of entities at steps that are computed from their tables where they are used, one step after the other.

A table of all (entity, step) pairs of a batch does not fit into the cache. The kernels compute the vectors of one step,
use them and go on to the next; the gradients go straight into those of the entity tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.autograd import Computed, hand_on, with_gradients
from tkg_incremental.ops.scores import KINDS, Similarity

#: A formula and the steps ``[S]``.
Kernel = tuple[int, Tensor]
#: Lists of rows and their queries by step, as the kernels take them.
Lists = tuple[Tensor | int | None, ...]

_FORMULAS = {"diachronic": 0, "hyperplane": 1}
# Number of parts of a sum over entities, which threads divide; as in the kernels.
PARTS = 16
# Sizes in the kernel of one-vs-all losses, and how many groups of how many quads it takes at a time, at the most.
LANES, TILE, SHARES = 16, 48, 4
GROUPS_AT_A_TIME, QUADS_OF_A_GROUP = 8, 128


class StepTables:
    """Entity tables and the vectors of their rows at some steps, numbered from 0.

    Each use hands the tables on to the next (:func:`~tkg_incremental.ops.autograd.hand_on`).

    Args:
        formula: How vectors follow from rows, ``"diachronic"`` or ``"hyperplane"``.
        steps: ``[S]`` the steps.
        tables: ``[N, d]``, for diachronic vectors also frequencies and phases, ``[N, c]``.
        normals: ``[S, d]`` unit normals of the steps for hyperplanes.
        columns: ``[d]`` for each column of a vector, its column in the order of the kernels; :obj:`None` if the orders
            are the same.
    """

    def __init__(
        self,
        formula: str,
        steps: Tensor,
        tables: Sequence[Tensor],
        normals: Tensor | None = None,
        columns: Tensor | None = None,
    ) -> None:
        self._tensors = [each.contiguous() for each in (*tables, *([] if normals is None else [normals]))]
        self._kernel = _FORMULAS[formula], steps.to(torch.float)
        self._columns = columns

    def vectors(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """Vectors of rows at steps, pair by pair, ``2 × [M] → [M, d]``."""
        given = self._kernel, rows.contiguous(), numbers.contiguous()
        compute, gradients = partial(_vectors_of_pairs, *given), partial(_gradients_by_pairs, *given)
        *self._tensors, vectors = hand_on(self._tensors, [], compute, gradients)
        return vectors if self._columns is None else vectors.index_select(1, self._columns)

    def sampled_scores(
        self,
        query: Tensor,
        lists: Tensor,
        numbers: Tensor,
        similarity: Similarity,
        list_of_query: Tensor | None = None,
    ) -> Tensor:
        """Each query against a list of rows at one step, ``[Q, d] → [Q, K]``.

        Args:
            query: ``[Q, d]`` query vectors.
            lists: ``[L, K]`` rows of the tables.
            numbers: ``[L]`` the number of each list's step.
            similarity: How queries and candidates are compared.
            list_of_query: ``[Q]`` the list of each query; :obj:`None` if every query has its own.
        """
        sizes = len(self._kernel[1]), len(self._tensors[0])
        by_step, most_rows = _sort_lists(lists.contiguous(), numbers.contiguous(), list_of_query, *sizes)
        given = self._kernel, KINDS[similarity], by_step, most_rows
        compute = partial(_scores_at_steps, *given, lists.size(1))
        query = self._in_order(query).contiguous()
        *self._tensors, scores = hand_on(self._tensors, [query], compute, partial(_gradients_of_scores, *given))
        return scores

    def encode_known(self, order: Tensor, sizes: Sequence[int]) -> Tensor:
        """Vectors of the first ``sizes[s]`` rows of ``order`` at step ``s``, step after step, ``[sum(sizes), d]``."""
        numbers = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        return self.vectors(torch.cat([order[:size] for size in sizes]), numbers)

    def one_vs_all_loss(
        self,
        query: Tensor,
        positive: Tensor,
        order: Tensor,
        groups: Tensor,
        masks: Sequence[tuple[Tensor, Tensor]],
        similarity: Similarity,
        scale: float = 1.0,
    ) -> Tensor:
        """:func:`~tkg_incremental.ops.one_vs_all.one_vs_all_loss` against the first rows of ``order`` at the queries'
        steps. It must be the last use of the tables.

        Args:
            query: ``[2, B, d]`` query vectors for tails and for heads.
            positive: ``[2, B]`` scores of the true answers.
            order: ``[n]`` rows of the tables, distinct.
            groups: ``[G, 4]`` quads that share their candidates: number of the step, first quad, number of quads,
                number of candidates.
            masks: For each side, (quad, place in the order) pairs that do not count, by ascending quad.
            similarity: How queries and candidates are compared.
            scale: A factor.
        """
        given = self._kernel, order.contiguous(), split_groups(groups), masks, KINDS[similarity], scale
        query = self._in_order(query).contiguous()
        return with_gradients(partial(_one_vs_all, *given), query, positive.contiguous(), *self._tensors)

    def _in_order(self, query: Tensor) -> Tensor:
        """Query vectors ``[*, d]`` with their columns in the order of the kernels."""
        return query if self._columns is None else query.index_select(-1, torch.argsort(self._columns))


def _sort_lists(
    lists: Tensor, numbers: Tensor, list_of_query: Tensor | None, steps: int, rows: int
) -> tuple[Lists, int]:
    """Lists by step, and the largest number of distinct rows of a step."""
    order, starts = _by_step(numbers, steps)
    slots, used, counts = torch.empty_like(lists), torch.empty_like(lists), torch.zeros_like(starts)
    native.call(
        "assign_slots",
        *(lists, order, starts, steps, lists.size(1)),
        *(torch.full((rows,), -1), slots, used, counts),
    )
    queries, query_starts = order, starts
    if list_of_query is not None:
        list_of_query = list_of_query.contiguous()
        numbers = numbers.index_select(0, list_of_query)
        queries, query_starts = _by_step(numbers, steps)
    sorted_lists = lists, slots, used, counts, starts, list_of_query, queries, query_starts, numbers
    return (*sorted_lists, steps, lists.size(1)), int(counts.max())


def _by_step(numbers: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Indices sorted by step, and where each step begins among them, ``[steps + 1]``."""
    counts = torch.bincount(numbers, minlength=steps)
    return torch.argsort(numbers, stable=True), torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _addresses(*given: Tensor | int | None) -> Tensor:
    return torch.tensor([each.data_ptr() if isinstance(each, Tensor) else each or 0 for each in given])


def _formula(kernel: Kernel, tensors: Sequence[Tensor]) -> Tensor:
    kind, when = kernel
    e = tensors[0]
    if kind == _FORMULAS["hyperplane"]:
        return _addresses(kind, e.size(1), 0, e, None, None, when, tensors[1])
    return _addresses(kind, e.size(1), tensors[1].size(1), *tensors, when, None)


def _gradients(tensors: Sequence[Tensor], given: Sequence[Tensor | None] = ()) -> tuple[list[Tensor], Tensor | None]:
    """Gradients of the tables and normals, which kernels add to, and among them that of the normals, if there are any:
    zeros, or what others have left."""
    given = given or [None] * len(tensors)
    values = [
        torch.zeros_like(tensor) if gradient is None else gradient.contiguous()
        for tensor, gradient in zip(tensors, given, strict=True)
    ]
    return values, values[1] if len(tensors) == 2 else None


def _vectors_of_pairs(kernel: Kernel, rows: Tensor, numbers: Tensor, *tensors: Tensor) -> Computed:
    vectors = tensors[0].new_empty(len(rows), tensors[0].size(1))
    native.call("vectors_of_pairs", _formula(kernel, tensors), rows, numbers, len(rows), vectors)
    return vectors, tensors


def _gradients_by_pairs(
    kernel: Kernel, rows: Tensor, numbers: Tensor, grad: Tensor, left: Sequence[Tensor | None], *tensors: Tensor
) -> list[Tensor]:
    out, normals = _gradients(tensors, left)
    pairs = rows, numbers, len(rows), grad.contiguous()
    native.call("gradients_by_pairs", _formula(kernel, tensors), *pairs, _addresses(*out), normals)
    return out


def _scores_at_steps(
    kernel: Kernel, kind: int, by_step: Lists, most_rows: int, samples: int, *tensors: Tensor
) -> Computed:
    *tables, query = tensors
    scores, room = query.new_empty(len(query), samples), _room(query, most_rows)
    given = kind, _formula(kernel, tables), _addresses(*by_step), query
    native.call("scores_at_steps", *given, scores, room, most_rows)
    return scores, tensors


def _gradients_of_scores(
    kernel: Kernel,
    kind: int,
    by_step: Lists,
    most_rows: int,
    grad: Tensor,
    left: Sequence[Tensor | None],
    *tensors: Tensor,
) -> list[Tensor]:
    *tables, query = tensors
    (out, normals), grad_query, width = _gradients(tables, left), torch.empty_like(query), query.size(1)
    places = torch.zeros(torch.get_num_threads(), len(tables[0]), dtype=torch.long)
    parts = None if normals is None else query.new_zeros(PARTS, *normals.shape)
    native.call(
        "gradients_of_scores_at_steps",
        *(kind, _formula(kernel, tables), _addresses(*by_step), query, grad.contiguous(), grad_query),
        *(_addresses(*out), parts, _room(query, most_rows), most_rows, places, len(tables[0])),
        *(places.new_empty(grad.shape), query.new_empty(PARTS, 2, width)),
    )
    if normals is not None and parts is not None:
        normals += parts.sum(0)
    return [*out, grad_query]


def _room(query: Tensor, rows: int) -> Tensor:
    """Room for the vectors of one step per thread."""
    return query.new_empty(torch.get_num_threads(), rows, query.size(1))


def _one_vs_all(
    kernel: Kernel,
    order: Tensor,
    groups: Tensor,
    masks: Sequence[tuple[Tensor, Tensor]],
    kind: int,
    scale: float,
    query: Tensor,
    positive: Tensor,
    *tensors: Tensor,
) -> Computed:
    """The loss and its gradients: the scores are too large to be kept."""
    (out, normals), grad_query, partition = _gradients(tensors), torch.empty_like(query), torch.empty_like(positive)
    bounds = torch.cat([groups[:, 1], groups.new_tensor([query.size(1)])])
    starts = torch.stack([torch.searchsorted(row, bounds) for row, _ in masks])
    starts[1] += len(masks[0][0])
    masked = torch.cat([torch.stack(pairs, 1) for pairs in masks])
    width, at_a_time = query.size(2), min(GROUPS_AT_A_TIME, len(groups))
    stride, padded = _round_up(width), _round_up(2 * int(groups[:, 2].max()))
    floats = padded * (stride * (1 + SHARES) + width + 1 + int(groups[:, 3].max()))
    channels = tensors[1].size(1) if normals is None else 0
    parts = None if normals is None else query.new_zeros(SHARES, *normals.shape)
    native.call(
        "one_vs_all_at_steps",
        *(kind, _formula(kernel, tensors), order, groups, len(groups), masked, starts, query.size(1)),
        *(torch.tensor(scale), query, positive, partition, grad_query, _addresses(*out), parts, len(kernel[1])),
        *(query.new_empty(at_a_time, floats), at_a_time, floats),
        query.new_empty(SHARES, TILE * 2 * (stride + channels)),
    )
    if normals is not None and parts is not None:
        normals += parts.sum(0)
    grad_positive = ((positive - partition).exp() - 1).mul_(scale)
    return (partition - positive).sum() * scale, [grad_query, grad_positive, *out]


def split_groups(groups: Tensor) -> Tensor:
    """Groups ``[G, 4]`` of at most ``QUADS_OF_A_GROUP`` quads, of nearly equal sizes where one is divided."""
    number, first, quads, entities = groups.unbind(1)
    parts = (quads + QUADS_OF_A_GROUP - 1) // QUADS_OF_A_GROUP
    of = torch.arange(len(groups)).repeat_interleave(parts)
    part = torch.arange(len(of)) - (parts.cumsum(0) - parts)[of]
    begin, end = (quads[of] * (part + k) // parts[of] for k in (0, 1))
    return torch.stack([number[of], first[of] + begin, end - begin, entities[of]], 1)


def _round_up(number: int) -> int:
    return -(-number // LANES) * LANES
