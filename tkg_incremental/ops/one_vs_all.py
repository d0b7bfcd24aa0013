"""Cross-entropy of true answers against whole tables of candidates, with other true answers left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.autograd import Computed, with_gradients
from tkg_incremental.ops.scores import Similarity, all_scores

#: Queries that share their candidates: first query, number of queries, first row of the table, number of rows.
Group = tuple[int, int, int, int]


def one_vs_all_loss(
    query: Tensor,
    table: Tensor,
    positive: Tensor,
    groups: Sequence[Group],
    masks: Sequence[tuple[Tensor, Tensor]],
    similarity: Similarity,
    scale: float = 1.0,
    limits: Tensor | None = None,
) -> Tensor:
    r"""``scale`` times the sum over queries of
    :math:`-\log \frac{\exp(p)}{\exp(p) + \sum_{c \notin mask} \exp(\mathrm{sim}(q, c))}`.

    Args:
        query: ``[S, B, d]`` query vectors of ``S`` sides.
        table: ``[N, d]`` vectors of candidates.
        positive: ``[S, B]`` scores of the true answers.
        groups: Queries and their candidates, by ascending queries.
        masks: For each side, (row, column) pairs that do not count, the true answers, by ascending row; a column
            counts from the start of the group.
        similarity: How queries and candidates are compared.
        scale: A factor. Given here, it costs nothing; a product with the loss is another walk over all gradients.
        limits: ``[B]`` number of candidates of each query, if some have fewer than their group; :obj:`None` otherwise.
    """
    shared = groups, masks, similarity, scale, limits
    return with_gradients(partial(_loss_and_gradients, *shared), query, table, positive)


# The score matrices are the large things here, so they are walked as few times as can be: the product writes them, then
# they become in place the (unnormalised) softmax that the gradients need, with the normalisation in the small factors.
# Groups are handled one by one, so one group's scores stay in the cache between those walks.
def _loss_and_gradients(
    groups: Sequence[Group],
    masks: Sequence[tuple[Tensor, Tensor]],
    similarity: Similarity,
    scale: float,
    limits: Tensor | None,
    query: Tensor,
    table: Tensor,
    positive: Tensor,
) -> Computed:
    sides, width = len(masks), query.size(-1)
    grad_query, grad_positive = torch.empty_like(query), torch.empty_like(positive)
    # Groups that share candidates add to their gradient; the others write it.
    add = len({start for _, _, start, _ in groups}) < len(groups)
    grad_table = torch.zeros_like(table) if add else torch.empty_like(table)
    loss = positive.new_zeros(())
    bounds = torch.tensor([0, *(first + count for first, count, _, _ in groups)], device=query.device)
    mask_bounds = torch.stack([torch.searchsorted(row, bounds) for row, _ in masks]).tolist()
    for number, (first, count, start, size) in enumerate(groups):
        rows = slice(first, first + count)
        candidates, grad_candidates = table[start : start + size], grad_table[start : start + size]
        # The queries of all sides in one product.
        vectors, true = query[:, rows].reshape(-1, width), positive[:, rows].reshape(-1)
        # Under autocast the product has fewer bits than the sums and logarithms below need.
        scores = all_scores(vectors, candidates, similarity).to(true.dtype)
        distance = None if similarity == "dot" else scores.neg()
        masked = []
        for side, (row, column) in enumerate(masks):
            begin, end = mask_bounds[side][number : number + 2]
            masked.append((row[begin:end] + (side * count - first)) * size + column[begin:end])
        if limits is not None:
            unknown = torch.arange(size, device=query.device) >= limits[rows, None]
            scores.view(sides, count, size).masked_fill_(unknown, -torch.inf)
        peak, total = masked_softmax(scores, true, torch.cat(masked))
        loss += (total.log() + peak - true).sum()
        grad_positive[:, rows] = ((true - peak).exp() / total - 1).mul_(scale).view(sides, count)
        factor = scale / total
        by_query = _gradients(scores, factor, vectors, candidates, distance, similarity, grad_candidates, add)
        grad_query[:, rows] = by_query.view(sides, count, width)
    return loss * scale, (grad_query, grad_table, grad_positive)


def masked_softmax(scores: Tensor, true: Tensor, masked: Tensor) -> tuple[Tensor, Tensor]:
    """Turns scores ``[B, N]`` in place into the exponentials of a softmax beside the true answers' scores ``[B]``, with
    zeros at the ``masked`` places ``row × N + column``. Returns what was subtracted from the scores of each row, its
    largest score, and the sum of the row with its true answer, ``2 × [B]``."""
    if native.takes(scores, true, masked) and scores.is_contiguous():
        peak, total = torch.empty_like(true), torch.empty_like(true)
        native.call("masked_softmax", scores, true.contiguous(), masked, len(masked), *scores.shape, peak, total)
        return peak, total
    scores.view(-1)[masked] = -torch.inf
    peak = torch.maximum(scores.amax(1), true)
    scores.sub_(peak[:, None]).exp_()
    return peak, scores.sum(1) + (true - peak).exp()


def _gradients(
    softmax: Tensor,
    scale: Tensor,
    query: Tensor,
    table: Tensor,
    distance: Tensor | None,
    similarity: Similarity,
    grad_table: Tensor,
    add: bool,
) -> Tensor:
    """Gradients of the summed log-partition, from the softmax before it is ``scale``-d by row: that of the table is
    written or added to ``grad_table``, that of the query is returned."""
    if distance is None:
        torch.addmm(grad_table, softmax.t(), query * scale[:, None], beta=float(add), out=grad_table)
        return (softmax @ table).mul_(scale[:, None])
    p = 1.0 if similarity == "l1" else 2.0
    weights = softmax.mul_(-scale[:, None])
    grad_query = torch.ops.aten._cdist_backward(weights, query, table, p, distance)
    turned, distance = weights.t().contiguous(), distance.t().contiguous()
    by_table = torch.ops.aten._cdist_backward(turned, table, query, p, distance)
    if add:
        grad_table += by_table
    else:
        grad_table.copy_(by_table)
    return grad_query
