from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.halves import halves
from tkg_incremental.ops.answers import Side


class SimplE(Decoder):
    r"""The score of `"SimplE Embedding for Link Prediction in Knowledge Graphs"
    <https://arxiv.org/abs/1802.04868>`_.

    .. math::
        \tfrac{1}{2} \left( \langle \mathbf{h}_1, \mathbf{r}_1, \mathbf{t}_2 \rangle +
        \langle \mathbf{t}_1, \mathbf{r}_2, \mathbf{h}_2 \rangle \right)

    The first half of an entity's vector is its role as a head, the second its role as a tail; of a
    relation's, the relation and its inverse.
    """

    similarity = "dot"
    reads_halves = True

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        as_head, as_tail = halves(given)
        forth, back = halves(rel)
        if side == "tail":
            return 0.5 * torch.cat([as_tail * back, as_head * forth], dim=-1)
        return 0.5 * torch.cat([as_tail * forth, as_head * back], dim=-1)
