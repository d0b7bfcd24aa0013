from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.halves import halves
from tkg_incremental.ops.answers import Side


class ConjugateTransE(Decoder):
    r"""The score of `"TeRo: A Time-aware Knowledge Graph Embedding via Temporal Rotation"
    <https://aclanthology.org/2020.coling-main.139>`_.

    .. math::
        -\lVert \mathbf{h} + \mathbf{r} - \overline{\mathbf{t}} \rVert_1

    The first half of a vector is its real part, the second half its imaginary part. The norm sums the absolute values
    of both parts, which conjugation does not change: so
    :math:`\lVert \mathbf{h} + \mathbf{r} - \overline{\mathbf{t}} \rVert_1 =
    \lVert \overline{\mathbf{h} + \mathbf{r}} - \mathbf{t} \rVert_1`, and candidates need not be conjugated.
    """

    similarity = "l1"
    reads_halves = True

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        if side == "tail":
            return _conjugate(given + rel)
        return _conjugate(given) - rel


def _conjugate(x: Tensor) -> Tensor:
    re, im = halves(x)
    return torch.cat([re, -im], dim=-1)
