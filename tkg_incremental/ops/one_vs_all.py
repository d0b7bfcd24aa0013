"""Cross-entropy of true answers against whole tables of candidates, with other true answers left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.ops.scores import Similarity, all_scores


class Group(NamedTuple):
    """Queries that share their candidates.

    Args:
        rows: The queries.
        start: First row of the table that is a candidate.
        width: Number of candidates.
        limits: ``[n]`` number of candidates of each query, if some of them have fewer; :obj:`None` otherwise.
    """

    rows: slice
    start: int
    width: int
    limits: Tensor | None = None


def one_vs_all_loss(
    query: Tensor,
    table: Tensor,
    positive: Tensor,
    groups: Sequence[Group],
    masks: Sequence[tuple[Tensor, Tensor]],
    similarity: Similarity,
) -> Tensor:
    r"""The sum over queries of :math:`-\log \frac{\exp(p)}{\exp(p) + \sum_{c \notin mask} \exp(\mathrm{sim}(q, c))}`.

    Args:
        query: ``[S, B, d]`` query vectors of ``S`` sides.
        table: ``[N, d]`` vectors of candidates.
        positive: ``[S, B]`` scores of the true answers.
        groups: Queries and their candidates, by ascending rows.
        masks: For each side, (row, column) pairs that do not count, the true answers, by ascending row; a column
            counts from the start of the group.
        similarity: How queries and candidates are compared.
    """
    return _OneVsAll.apply(query, table, positive, groups, masks, similarity)


class _OneVsAll(torch.autograd.Function):
    # The score matrices are the large things here, so they are walked as few times as can be: the product writes
    # them, then they become in place the (unnormalised) softmax that backward needs; the normalisation goes into the
    # small factors. Groups are handled one by one, so one group's scores stay in the cache between those walks; and
    # both gradients are made on the way forward, so that nothing of this size is kept for backward.

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        table: Tensor,
        positive: Tensor,
        groups: Sequence[Group],
        masks: Sequence[tuple[Tensor, Tensor]],
        similarity: Similarity,
    ) -> Tensor:
        grad_query, grad_table = torch.empty_like(query), torch.zeros_like(table)
        grad_positive = torch.empty_like(positive)
        loss = positive.new_zeros(())
        bounds = torch.tensor([0, *(group.rows.stop for group in groups)], device=query.device)
        mask_bounds = torch.stack([torch.searchsorted(row, bounds) for row, _ in masks]).tolist()
        for number, (rows, start, width, limits) in enumerate(groups):
            candidates, grad_candidates = table[start : start + width], grad_table[start : start + width]
            for side, (row, column) in enumerate(masks):
                vectors, true = query[side, rows], positive[side, rows]
                # Under autocast the product has fewer bits than the sums and logarithms below need.
                scores = all_scores(vectors, candidates, similarity).to(true.dtype)
                distance = None if similarity == "dot" else scores.neg()
                masked = slice(mask_bounds[side][number], mask_bounds[side][number + 1])
                scores[row[masked] - rows.start, column[masked]] = -torch.inf
                if limits is not None:
                    scores.masked_fill_(torch.arange(width, device=query.device) >= limits[:, None], -torch.inf)
                peak = torch.maximum(scores.amax(1), true)
                softmax = scores.sub_(peak[:, None]).exp_()
                own = (true - peak).exp()
                total = softmax.sum(1) + own
                loss += (total.log() + peak - true).sum()
                grad_positive[side, rows] = own / total - 1
                grads = _gradients(softmax, total.reciprocal(), vectors, candidates, distance, similarity)
                grad_query[side, rows] = grads[0]
                grad_candidates += grads[1]
        ctx.save_for_backward(grad_query, grad_table, grad_positive)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, table, positive = ctx.saved_tensors
        # In place: a graph is walked once here, and these are ours.
        return query.mul_(grad), table.mul_(grad), positive.mul_(grad), None, None, None


def _gradients(
    softmax: Tensor, scale: Tensor, query: Tensor, table: Tensor, distance: Tensor | None, similarity: Similarity
) -> tuple[Tensor, Tensor]:
    """Gradients of the summed log-partition by query and table, from the softmax before it is ``scale``-d by row."""
    if distance is None:
        return (softmax @ table).mul_(scale[:, None]), softmax.t() @ (query * scale[:, None])
    p = 1.0 if similarity == "l1" else 2.0
    weights = softmax.mul_(-scale[:, None])
    grad_query = torch.ops.aten._cdist_backward(weights, query, table, p, distance)
    turned, distance = weights.t().contiguous(), distance.t().contiguous()
    return grad_query, torch.ops.aten._cdist_backward(turned, table, query, p, distance)
