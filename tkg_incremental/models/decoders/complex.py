from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.halves import halves
from tkg_incremental.ops.answers import Side


class ComplEx(Decoder):
    r"""The score of `"Complex Embeddings for Simple Link Prediction" <https://arxiv.org/abs/1606.06357>`_.

    .. math::
        \mathrm{Re}\,\langle \mathbf{h}, \mathbf{r}, \overline{\mathbf{t}} \rangle

    The first half of a vector is its real part, the second its imaginary part.
    """

    similarity = "dot"
    reads_halves = True

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        a, b = halves(given)
        re, im = halves(rel)
        if side == "tail":  # Re(h r) · Re(t) + Im(h r) · Im(t)
            return torch.cat([a * re - b * im, a * im + b * re], dim=-1)
        return torch.cat([a * re + b * im, b * re - a * im], dim=-1)
