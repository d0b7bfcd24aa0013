"""Comparing query vectors with candidates: pairs, sampled candidates, all candidates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.autograd import Computed, hand_on

Similarity = Literal["dot", "l1", "l2"]
# What later uses of the table have left of its gradient; and the gradients of table and query.
Left = Sequence[Tensor | None]
Gradients = tuple[Tensor | None, Tensor]

# Gathered vectors at a time in the kernels that have to write them: they stay in the cache until they are used.
_VECTORS_AT_A_TIME = 1 << 13

# Torch says once in a process that its sparse matrices are in beta; what is used of them here is tested.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1), check_invariants=False)


def compare(query: Tensor, candidate: Tensor, similarity: Similarity) -> Tensor:
    """Similarity of pairs of vectors, ``[*, d] × [*, d] → [*]``; distances count negative."""
    if similarity == "dot":
        return (query * candidate).sum(-1)
    return -torch.linalg.vector_norm(query - candidate, ord=1 if similarity == "l1" else 2, dim=-1)


def all_scores(query: Tensor, table: Tensor, similarity: Similarity, out: Tensor | None = None) -> Tensor:
    """Every query against every row of a table, ``[B, d] × [N, d] → [B, N]``; into ``out`` where that can be."""
    if similarity == "dot":
        return torch.mm(query, table.t(), out=out)
    learns = torch.is_grad_enabled() and (query.requires_grad or table.requires_grad)
    if similarity == "l1" and native.takes(query, table) and not learns:
        out = query.new_empty(len(query), len(table)) if out is None else out
        native.call("all_distances", query.contiguous(), table.contiguous(), out, *out.shape, query.size(1))
        return out
    distances = torch.cdist(query, table, p=1.0 if similarity == "l1" else 2.0)
    return distances.neg() if learns else distances.neg_()  # the gradient of a distance needs the distance


def sampled_scores(query: Tensor, table: Tensor, index: Tensor, similarity: Similarity) -> Tensor:
    """Each query against its own sample of a table's rows, ``[B, d] × [N, d], [B, K] → [B, K]``.

    Fastest where neighbouring queries sample neighbouring rows, which then stay in the cache.
    """
    return with_sampled_scores(table, query, index, similarity)[1]


def with_sampled_scores(table: Tensor, query: Tensor, index: Tensor, similarity: Similarity) -> tuple[Tensor, Tensor]:
    """The table, to go on with (:func:`~tkg_incremental.ops.autograd.hand_on`), and :func:`sampled_scores` of its rows,
    without the gathered vectors ``[B, K, d]`` where there is a way."""
    has_product = similarity == "dot" and query.dtype in (torch.float, torch.double)
    if similarity in KINDS and native.takes(query, table, index):
        given = index.contiguous(), KINDS[similarity]
        compute, gradients = partial(_scores_in_c, *given), partial(_gradients_in_c, *given)
    elif similarity == "dot" and index.size(1) >= len(table):
        # More draws than there are candidates: all scores are fewer.
        return table, all_scores(query, table, similarity).gather(1, index)
    elif query.device.type == "cpu" and (has_product or similarity == "l1"):
        index = index.to(torch.int32)
        compute = partial(_sampled_products if has_product else _sampled_distances, index)
        gradients = partial(_gradients_of_products if has_product else _gradients_of_distances, index)
    else:
        return table, compare(query.unsqueeze(1), F.embedding(index, table), similarity)
    table, scores = hand_on([table], [query], compute, gradients)
    return table, scores


KINDS = {"dot": 0, "l1": 1}


def _scores_in_c(index: Tensor, kind: int, table: Tensor, query: Tensor) -> Computed:
    scores = query.new_empty(index.shape)
    sizes = *index.shape, query.size(1)
    native.call("sampled_scores", kind, query.contiguous(), table.contiguous(), index, scores, *sizes)
    return scores, (table, query)


def _gradients_in_c(index: Tensor, kind: int, grad: Tensor, left: Left, table: Tensor, query: Tensor) -> Gradients:
    given = kind, query.contiguous(), table.contiguous(), index, grad.contiguous()
    (rows, samples), width = index.shape, query.size(1)
    grad_table, grad_query = left[0], query.new_empty(query.shape)
    native.call("sampled_query_gradient", *given, grad_query, rows, samples, width)
    if table.requires_grad:
        grad_table = table.new_empty(table.shape) if left[0] is None else left[0].contiguous()
        counts = index.new_zeros(torch.get_num_threads(), len(table))
        scratch = counts, torch.empty_like(index), grad.new_empty(grad.shape)
        native.call(
            "sampled_table_gradient",
            *given,
            grad_table,
            int(left[0] is None),
            rows,
            samples,
            len(table),
            width,
            *scratch,
        )
    return grad_table, grad_query


def _sampled_products(index: Tensor, table: Tensor, query: Tensor) -> Computed:
    """Torch's product of dense matrices at sampled places."""
    rows, samples = index.shape
    starts = torch.arange(0, rows * samples + 1, samples, dtype=torch.int32)
    # The values are added to the product, times zero: they must be numbers.
    values, size = query.new_zeros(rows * samples), (rows, len(table))
    places = torch.sparse_csr_tensor(starts, index.reshape(-1), values, size, check_invariants=False)
    scores = torch.sparse.sampled_addmm(places, query, table.t(), beta=0.0).values().view(rows, samples)
    return scores, (table, query)


def _gradients_of_products(index: Tensor, grad: Tensor, left: Left, table: Tensor, query: Tensor) -> Gradients:
    """Sums of weighted rows, which is what a bag of embeddings does."""
    grad_query = F.embedding_bag(index, table, per_sample_weights=grad.contiguous(), mode="sum")
    order, first = _by_table_row(index, len(table))
    weights, owner = grad.reshape(-1).index_select(0, order), order // index.size(1)
    grad_table = F.embedding_bag(owner, query, first[:-1], per_sample_weights=weights, mode="sum")
    return grad_table if left[0] is None else left[0].add_(grad_table), grad_query


def _sampled_distances(index: Tensor, table: Tensor, query: Tensor) -> Computed:
    """Torch has no sampled distance, so the gathered vectors are written: a cache-full at a time."""
    scores = query.new_empty(index.shape)
    for part, difference in _differences(query, table, index):
        torch.sum(difference.abs_(), dim=-1, out=scores[part])
    return scores.neg_(), (table, query)


def _gradients_of_distances(index: Tensor, grad: Tensor, left: Left, table: Tensor, query: Tensor) -> Gradients:
    grad_query = torch.empty_like(query)
    for part, difference in _differences(query, table, index):
        torch.sum(difference.sign_().mul_(grad[part].unsqueeze(-1)), dim=1, out=grad_query[part])
    # The differences are taken a second time, in the order of the table's rows: each row is then a bag of them, which
    # is several times cheaper than to add every difference to its row.
    order, first = _by_table_row(index, len(table))
    owner, row = order // index.size(1), index.reshape(-1).index_select(0, order)
    weights = grad.reshape(-1).index_select(0, order).neg_().to(table.dtype)
    grad_table = torch.zeros_like(table)
    # Whole rows of the table, about a cache-full of samples at a time.
    full = torch.arange(0, len(order), _VECTORS_AT_A_TIME)
    rows = torch.cat([torch.searchsorted(first, full), torch.tensor([len(table)])]).unique_consecutive()
    bounds = zip(rows.tolist(), first.index_select(0, rows).tolist(), strict=True)
    for (begin, low), (end, high) in pairwise(bounds):
        signs = table.index_select(0, row[low:high]).sub_(query.index_select(0, owner[low:high])).sign_()
        grad_table[begin:end] = F.embedding_bag(
            torch.arange(high - low), signs, first[begin:end] - low, per_sample_weights=weights[low:high], mode="sum"
        )
    return grad_table if left[0] is None else left[0].add_(grad_table), grad_query


def _by_table_row(index: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The order that sorts a sample by table row, and where in it each row begins, ``[rows + 1]``."""
    flat = index.reshape(-1)
    counts = torch.bincount(flat, minlength=rows)
    return flat.argsort(), F.pad(counts.cumsum(0), (1, 0))


def _differences(query: Tensor, table: Tensor, index: Tensor) -> Any:
    """Yields (part of the rows, candidates minus query ``[b, K, d]``) in one buffer that is used again."""
    rows, samples = index.shape
    at_a_time = max(1, _VECTORS_AT_A_TIME // max(1, samples))
    buffer = table.new_empty(at_a_time * samples, table.size(1))
    for start in range(0, rows, at_a_time):
        part = slice(start, min(start + at_a_time, rows))
        picked = index[part].reshape(-1)
        vectors = torch.index_select(table, 0, picked, out=buffer[: len(picked)])
        yield part, vectors.view(-1, samples, table.size(1)).sub_(query[part].unsqueeze(1))
