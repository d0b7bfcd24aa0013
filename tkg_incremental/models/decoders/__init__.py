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


def make_decoder(name: str, hidden_channels: int) -> Decoder:
    """A decoder by name, for vectors of a given width."""
    if name not in DECODERS:
        raise ValueError(f"decoder must be one of {', '.join(DECODERS)} (got {name!r})")
    if name in ("complex", "simple") and hidden_channels % 2:
        raise ValueError(f"hidden_channels must be even with the decoder {name!r} (got {hidden_channels})")
    return DECODERS[name]()
