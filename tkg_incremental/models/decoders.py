"""Decoders: from the vectors of a head, a relation and a tail to a score."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tkg_incremental.models.halves import halves
from tkg_incremental.ops.answers import Side
from tkg_incremental.ops.complex_numbers import complex_product, product_with_conjugate
from tkg_incremental.ops.scores import Similarity, compare

__all__ = ["DECODERS", "ComplEx", "ConjugateTransE", "Decoder", "DistMult", "SimplE", "TransE", "make_decoder"]


class Decoder(nn.Module):
    r"""A score that compares a *query vector* with a candidate's vector.

    Every score on offer can be written as :math:`\mathrm{sim}(\mathrm{query}(\text{given}, r), \text{candidate})`,
    for either side. So candidates are scored by one matrix product or distance, and the kernels know
    the similarity alone.

    Args:
        name: Its name.
        query: Vectors to compare candidates for a side with, from vectors of given entities and of relations:
            ``2 × [*, d], side → [*, d]``.
        similarity: How query vectors and candidates are compared: ``"dot"``, ``"l1"`` or ``"l2"``.
        reads_halves: Whether it reads vectors as two halves, which must have the same width.
        dropout: Probability of a channel of a query vector to be dropped in training; the others are scaled by
            :math:`1 / (1 - p)`. With a product as the similarity, which it needs, that drops the channel from the
            scores of all candidates of the query.
    """

    def __init__(
        self,
        name: str,
        query: Callable[[Tensor, Tensor, Side], Tensor],
        similarity: Similarity = "dot",
        reads_halves: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1) (got {dropout})")
        if dropout and similarity != "dot":
            raise ValueError(f"dropout must be 0 with the similarity {similarity!r} of {name} (got {dropout})")
        self.name, self._query, self.similarity = name, query, similarity
        self.reads_halves, self.dropout = reads_halves, dropout

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        """What to compare candidates for ``side`` with: ``[*, d]``."""
        query = self._query(given, rel, side)
        return F.dropout(query, self.dropout, self.training) if self.dropout else query

    def forward(self, head: Tensor, rel: Tensor, tail: Tensor) -> Tensor:
        """Scores of triples: ``[*, d] → [*]``."""
        return compare(self.query(head, rel, "tail"), tail, self.similarity)

    def _get_name(self) -> str:
        return self.name

    def extra_repr(self) -> str:
        if self.similarity != "dot":
            return f"similarity={self.similarity!r}"
        return f"dropout={self.dropout}" if self.dropout else ""


def DistMult() -> Decoder:
    r"""The score of `"Embedding Entities and Relations for Learning and Inference in Knowledge Bases"
    <https://arxiv.org/abs/1412.6575>`_: :math:`\langle \mathbf{h}, \mathbf{r}, \mathbf{t} \rangle`.
    """
    return Decoder("DistMult", _distmult)


def _distmult(given: Tensor, rel: Tensor, side: Side) -> Tensor:
    return given * rel


def ComplEx() -> Decoder:
    r"""The score of `"Complex Embeddings for Simple Link Prediction" <https://arxiv.org/abs/1606.06357>`_.

    .. math::
        \mathrm{Re}\,\langle \mathbf{h}, \mathbf{r}, \overline{\mathbf{t}} \rangle

    The first half of a vector is its real part, the second its imaginary part.
    """
    return Decoder("ComplEx", _complex, reads_halves=True)


def _complex(given: Tensor, rel: Tensor, side: Side) -> Tensor:
    if side == "tail":  # Re(h r) · Re(t) + Im(h r) · Im(t)
        return complex_product(given, rel)
    return product_with_conjugate(given, rel)


def SimplE() -> Decoder:
    r"""The score of `"SimplE Embedding for Link Prediction in Knowledge Graphs"
    <https://arxiv.org/abs/1802.04868>`_.

    .. math::
        \tfrac{1}{2} \left( \langle \mathbf{h}_1, \mathbf{r}_1, \mathbf{t}_2 \rangle +
        \langle \mathbf{t}_1, \mathbf{r}_2, \mathbf{h}_2 \rangle \right)

    The first half of an entity's vector is its role as a head, the second its role as a tail; of a
    relation's, the relation and its inverse.
    """
    return Decoder("SimplE", _simple, reads_halves=True)


def _simple(given: Tensor, rel: Tensor, side: Side) -> Tensor:
    as_head, as_tail = halves(given)
    forth, back = halves(rel)
    if side == "tail":
        return 0.5 * torch.cat([as_tail * back, as_head * forth], dim=-1)
    return 0.5 * torch.cat([as_tail * forth, as_head * back], dim=-1)


def TransE(p: int = 1) -> Decoder:
    r"""The score of `"Translating Embeddings for Modeling Multi-Relational Data"
    <https://papers.nips.cc/paper/5071>`_: :math:`-\lVert \mathbf{h} + \mathbf{r} - \mathbf{t} \rVert_p`.

    Args:
        p: The norm, 1 or 2.
    """
    if p not in (1, 2):
        raise ValueError(f"p must be 1 or 2 (got {p})")
    return Decoder("TransE", _transe, "l1" if p == 1 else "l2")


def _transe(given: Tensor, rel: Tensor, side: Side) -> Tensor:
    return given + rel if side == "tail" else given - rel


def ConjugateTransE() -> Decoder:
    r"""The score of `"TeRo: A Time-aware Knowledge Graph Embedding via Temporal Rotation"
    <https://aclanthology.org/2020.coling-main.139>`_.

    .. math::
        -\lVert \mathbf{h} + \mathbf{r} - \overline{\mathbf{t}} \rVert_1

    The first half of a vector is its real part, the second half its imaginary part. The norm sums the absolute values
    of both parts, which conjugation does not change: so
    :math:`\lVert \mathbf{h} + \mathbf{r} - \overline{\mathbf{t}} \rVert_1 =
    \lVert \overline{\mathbf{h} + \mathbf{r}} - \mathbf{t} \rVert_1`, and candidates need not be conjugated.
    """
    return Decoder("ConjugateTransE", _conjugate_transe, "l1", reads_halves=True)


def _conjugate_transe(given: Tensor, rel: Tensor, side: Side) -> Tensor:
    return _conjugate(given + rel) if side == "tail" else _conjugate(given) - rel


def _conjugate(x: Tensor) -> Tensor:
    re, im = halves(x)
    return torch.cat([re, -im], dim=-1)


#: Decoders by name.
DECODERS: dict[str, Callable[[], Decoder]] = {
    "complex": ComplEx,
    "distmult": DistMult,
    "simple": SimplE,
    "transe": TransE,
}


def make_decoder(name: str, dropout: float = 0.0) -> Decoder:
    """A decoder by name, with dropout on its query vectors if that is not zero."""
    if name not in DECODERS:
        raise ValueError(f"decoder must be one of {', '.join(DECODERS)} (got {name!r})")
    decoder = DECODERS[name]()
    return Decoder(decoder.name, decoder._query, decoder.similarity, decoder.reads_halves, dropout)
