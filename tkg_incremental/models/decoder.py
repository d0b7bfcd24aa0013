"""Decoders: from the vectors of a head, a relation and a tail to a score."""

from __future__ import annotations

from torch import Tensor, nn

from tkg_incremental.ops.answers import Side
from tkg_incremental.ops.scores import Similarity, compare


class Decoder(nn.Module):
    r"""Base class: a score that compares a *query vector* with a candidate's vector.

    Every score on offer can be written as :math:`\mathrm{sim}(\mathrm{query}(\text{given}, r), \text{candidate})`,
    for either side. So candidates are scored by one matrix product or distance, and the kernels know
    the similarity alone.
    """

    similarity: Similarity
    #: Whether it reads vectors as two halves, which must have the same width.
    reads_halves = False

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        """What to compare candidates for ``side`` with: ``[*, d]``."""
        raise NotImplementedError

    def forward(self, head: Tensor, rel: Tensor, tail: Tensor) -> Tensor:
        """Scores of triples: ``[*, d] → [*]``."""
        return compare(self.query(head, rel, "tail"), tail, self.similarity)
