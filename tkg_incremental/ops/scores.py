"""Comparing query vectors with candidates: pairs, sampled candidates, all candidates."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Similarity = Literal["dot", "l1", "l2"]


def compare(query: Tensor, candidate: Tensor, similarity: Similarity) -> Tensor:
    """Similarity of pairs of vectors, ``[*, d] × [*, d] → [*]``; distances count negative."""
    if similarity == "dot":
        return (query * candidate).sum(-1)
    return -torch.linalg.vector_norm(query - candidate, ord=1 if similarity == "l1" else 2, dim=-1)


def all_scores(query: Tensor, table: Tensor, similarity: Similarity) -> Tensor:
    """Every query against every row of a table, ``[B, d] × [N, d] → [B, N]``."""
    if similarity == "dot":
        return query @ table.t()
    return -torch.cdist(query, table, p=1.0 if similarity == "l1" else 2.0)


def sampled_scores(query: Tensor, table: Tensor, index: Tensor, similarity: Similarity) -> Tensor:
    """Each query against its own sample of a table's rows, ``[B, d] × [N, d], [B, K] → [B, K]``."""
    return compare(query.unsqueeze(1), torch.nn.functional.embedding(index, table), similarity)


