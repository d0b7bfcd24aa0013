from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.ops.answers import Side


class TransE(Decoder):
    r"""The score of `"Translating Embeddings for Modeling Multi-Relational Data"
    <https://papers.nips.cc/paper/5071>`_: :math:`-\lVert \mathbf{h} + \mathbf{r} - \mathbf{t} \rVert_p`.

    Args:
        p: The norm, 1 or 2.
    """

    def __init__(self, p: int = 1) -> None:
        super().__init__()
        if p not in (1, 2):
            raise ValueError(f"p must be 1 or 2 (got {p})")
        self.similarity = "l1" if p == 1 else "l2"

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        return given + rel if side == "tail" else given - rel

    def extra_repr(self) -> str:
        return f"similarity={self.similarity!r}"
