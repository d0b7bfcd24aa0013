from __future__ import annotations

from torch import Tensor

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.ops.answers import Side
from tkg_incremental.ops.complex_numbers import complex_product, product_with_conjugate


class ComplEx(Decoder):
    r"""The score of `"Complex Embeddings for Simple Link Prediction" <https://arxiv.org/abs/1606.06357>`_.

    .. math::
        \mathrm{Re}\,\langle \mathbf{h}, \mathbf{r}, \overline{\mathbf{t}} \rangle

    The first half of a vector is its real part, the second its imaginary part.
    """

    similarity = "dot"
    reads_halves = True

    def query(self, given: Tensor, rel: Tensor, side: Side) -> Tensor:
        if side == "tail":  # Re(h r) · Re(t) + Im(h r) · Im(t)
            return complex_product(given, rel)
        return product_with_conjugate(given, rel)
