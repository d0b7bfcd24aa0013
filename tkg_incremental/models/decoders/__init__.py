r"""Decoders: from the vectors of a fact to its score."""

from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.decoders.complex import ComplEx
from tkg_incremental.models.decoders.conjugate import ConjugateTransE
from tkg_incremental.models.decoders.distmult import DistMult
from tkg_incremental.models.decoders.dropout import Dropout
from tkg_incremental.models.decoders.simple import SimplE
from tkg_incremental.models.decoders.transe import TransE

__all__ = classes = ["ComplEx", "ConjugateTransE", "DistMult", "Dropout", "SimplE", "TransE"]

DECODERS: dict[str, type[Decoder]] = {"complex": ComplEx, "distmult": DistMult, "simple": SimplE, "transe": TransE}


def make_decoder(name: str, dropout: float = 0.0) -> Decoder:
    """A decoder by name, with dropout on its query vectors if that is not zero."""
    if name not in DECODERS:
        raise ValueError(f"decoder must be one of {', '.join(DECODERS)} (got {name!r})")
    decoder = DECODERS[name]()
    return Dropout(decoder, dropout) if dropout else decoder
