"""Cross-entropy of a true answer against a whole table of candidates, with other true answers left out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tkg_incremental.ops.scores import Similarity, all_scores


def one_vs_all_loss(
    query: Tensor, table: Tensor, positive: Tensor, mask: tuple[Tensor, Tensor], similarity: Similarity
) -> Tensor:
    r"""Per row :math:`-\log \frac{\exp(p)}{\exp(p) + \sum_{c \notin mask} \exp(\mathrm{sim}(q, c))}`, ``[B]``.

    Args:
        query: ``[B, d]`` query vectors.
        table: ``[N, d]`` candidates shared by all rows.
        positive: ``[B]`` scores of the true answers.
        mask: (row, column) pairs of scores that do not count, each ``[M]``: every true answer among the candidates.
        similarity: How queries and candidates are compared.
    """
    return _OneVsAll.apply(query, table, positive, *mask, similarity)


class _OneVsAll(torch.autograd.Function):
    # The score matrix is the one large thing here. It is written by the product, then turned in place into the
    # (unnormalised) softmax that backward needs; the normalisation goes into the small factors instead.

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, table: Tensor, positive: Tensor, row: Tensor, column: Tensor, similarity: Similarity
    ) -> Tensor:
        scores = all_scores(query, table, similarity)
        distance = scores.neg() if similarity != "dot" and ctx.needs_input_grad[0] else None
        scores[row, column] = -torch.inf
        peak = torch.maximum(scores.amax(1), positive) if table.size(0) else positive
        scores.sub_(peak[:, None]).exp_()
        own = (positive - peak).exp()
        total = scores.sum(1) + own
        ctx.save_for_backward(query, table, scores, total, own, distance)
        ctx.similarity = similarity
        return total.log() + peak - positive

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, table, softmax, total, own, distance = ctx.saved_tensors
        scale = grad / total
        grad_positive = own * scale - grad
        if ctx.similarity == "dot":
            grad_query = (softmax @ table).mul_(scale[:, None])
            grad_table = softmax.t() @ (query * scale[:, None])
        else:
            p = 1.0 if ctx.similarity == "l1" else 2.0
            weights = softmax * -scale[:, None]
            grad_query = torch.ops.aten._cdist_backward(weights, query, table, p, distance)
            grad_table = torch.ops.aten._cdist_backward(
                weights.t().contiguous(), table, query, p, distance.t().contiguous()
            )
        return grad_query, grad_table, grad_positive, None, None, None
