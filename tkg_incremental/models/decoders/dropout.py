from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.ops.answers import Side


class Dropout(Decoder):
    r"""Another decoder with dropout on its query vectors.

    With a product as the similarity, to drop a channel of :math:`\mathrm{query}(\text{given}, r)` is to drop it from
    :math:`\langle \mathrm{query}(\text{given}, r), \text{candidate} \rangle` for all candidates of the query. It is
    active in training mode only.

    Args:
        decoder: The decoder; its similarity must be ``"dot"``.
        p: Probability of a channel to be dropped; the others are scaled by :math:`1 / (1 - p)`.
    """

    def __init__(self, decoder: Decoder, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must lie in [0, 1) (got {p})")
        if decoder.similarity != "dot":
            raise ValueError(f"decoder must have the similarity 'dot' (got {decoder.similarity!r})")
        self.decoder, self.p = decoder, p
        self.similarity, self.reads_halves = decoder.similarity, decoder.reads_halves

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        return F.dropout(self.decoder.query(given, rel, side), self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
