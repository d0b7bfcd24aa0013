"""A table of vectors that several losses use."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from tkg_incremental.ops.rows import with_rows
from tkg_incremental.ops.scores import Similarity, with_sampled_scores


@dataclass(frozen=True)
class Places:
    """Lists of rows of a table.

    Args:
        index: ``[R, K]`` rows, counted from the first that a list may take.
        first: ``[R]`` which row that is; 0 if it is :obj:`None`.
    """

    index: Tensor
    first: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        return self.index if self.first is None else self.index + self.first[:, None]

    def lists(self, which: Tensor) -> Places:
        """Some of the lists, each as often as it is named, ``[n]``."""
        first = None if self.first is None else self.first.index_select(0, which)
        return Places(self.index.index_select(0, which), first)


class SharedTable:
    """A table whose gradient is summed in one buffer over all its uses.

    Autograd would give every use a gradient of the table's size, and add them up. Here each use hands the table on to
    the next, so that on the way back each adds to what those after it have left, in place.

    Args:
        vectors: ``[N, d]``.
    """

    def __init__(self, vectors: Tensor) -> None:
        self.vectors = vectors

    def rows(self, index: Tensor) -> Tensor:
        """Some of its rows, ``[*] → [*, d]``."""
        self.vectors, rows = with_rows(self.vectors, index)
        return rows

    def sampled_scores(self, query: Tensor, places: Places, similarity: Similarity) -> Tensor:
        """Each query against its own list of rows, ``[B, d], [B, K] → [B, K]``."""
        self.vectors, scores = with_sampled_scores(self.vectors, query, places.index, places.first, similarity)
        return scores

    def __len__(self) -> int:
        return len(self.vectors)
