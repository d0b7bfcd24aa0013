"""Cross-entropy of true answers against whole tables of candidates, with other true answers left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.ops.scores import Similarity, all_scores


def one_vs_all_loss(
    query: Tensor,
    table: Tensor,
    positive: Tensor,
    group_sizes: Sequence[int],
    widths: Sequence[int],
    masks: Sequence[tuple[Tensor, Tensor]],
    similarity: Similarity,
) -> Tensor:
    r"""The sum over rows of :math:`-\log \frac{\exp(p)}{\exp(p) + \sum_{c \notin mask} \exp(\mathrm{sim}(q, c))}`.

    Rows come in groups; each group has its own candidates.

    Args:
        query: ``[S, B, d]`` query vectors of ``S`` sides, rows by group.
        table: ``[sum(widths), d]`` candidates, group after group.
        positive: ``[S, B]`` scores of the true answers.
        group_sizes: Rows of each group.
        widths: Candidates of each group.
        masks: For each side, (row, column) pairs of scores that do not count, by ascending row: the true answers.
        similarity: How queries and candidates are compared.
    """
    return _OneVsAll.apply(query, table, positive, group_sizes, widths, masks, similarity)


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
        group_sizes: Sequence[int],
        widths: Sequence[int],
        masks: Sequence[tuple[Tensor, Tensor]],
        similarity: Similarity,
    ) -> Tensor:
        grad_query, grad_table = torch.empty_like(query), torch.zeros_like(table)
        grad_positive = torch.empty_like(positive)
        loss = positive.new_zeros(())
        bounds = torch.tensor([0, *group_sizes]).cumsum(0)
        starts, bounds = bounds.tolist(), bounds.to(query.device)
        mask_bounds = torch.stack([torch.searchsorted(row, bounds) for row, _ in masks]).tolist()
        parts = zip(table.split(list(widths)), grad_table.split(list(widths)), strict=True)
        for group, (candidates, grad_candidates) in enumerate(parts):
            start = starts[group]
            for side, (row, column) in enumerate(masks):
                rows = slice(start, starts[group + 1])
                vectors, true = query[side, rows], positive[side, rows]
                # Under autocast the product has fewer bits than the sums and logarithms below need.
                scores = all_scores(vectors, candidates, similarity).to(true.dtype)
                distance = None if similarity == "dot" else scores.neg()
                masked = slice(mask_bounds[side][group], mask_bounds[side][group + 1])
                scores[row[masked] - start, column[masked]] = -torch.inf
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
        return query.mul_(grad), table.mul_(grad), positive.mul_(grad), None, None, None, None


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
