from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.ops.answers import Side


class DistMult(Decoder):
    r"""The score of `"Embedding Entities and Relations for Learning and Inference in Knowledge Bases"
    <https://arxiv.org/abs/1412.6575>`_: :math:`\langle \mathbf{h}, \mathbf{r}, \mathbf{t} \rangle`.
    """

    similarity = "dot"

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        return given * rel
