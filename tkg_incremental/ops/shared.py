"""A table of vectors that several losses use."""

from __future__ import annotations

from torch import Tensor

from tkg_incremental.ops.rows import with_rows
from tkg_incremental.ops.scores import Similarity, with_sampled_scores


class SharedTable:
    """A table whose gradient is summed in one buffer over all its uses, as each hands it on to the next
    (:func:`~tkg_incremental.ops.autograd.hand_on`).

    Args:
        vectors: ``[N, d]``.
    """

    def __init__(self, vectors: Tensor) -> None:
        self.vectors = vectors

    def rows(self, index: Tensor) -> Tensor:
        """Some of its rows, ``[*] → [*, d]``."""
        self.vectors, rows = with_rows(self.vectors, index)
        return rows

    def sampled_scores(self, query: Tensor, index: Tensor, similarity: Similarity) -> Tensor:
        """Each query against its own list of rows, ``[B, d], [B, K] → [B, K]``."""
        self.vectors, scores = with_sampled_scores(self.vectors, query, index, similarity)
        return scores

    def __len__(self) -> int:
        return len(self.vectors)
