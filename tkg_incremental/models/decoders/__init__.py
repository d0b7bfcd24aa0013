r"""How a score is made from the vectors of a fact."""

from tkg_incremental.models.decoders.complex import ComplEx
from tkg_incremental.models.decoders.conjugate import ConjugateTransE
from tkg_incremental.models.decoders.distmult import DistMult
from tkg_incremental.models.decoders.dropout import Dropout
from tkg_incremental.models.decoders.simple import SimplE
from tkg_incremental.models.decoders.transe import TransE

__all__ = classes = ["ComplEx", "ConjugateTransE", "DistMult", "Dropout", "SimplE", "TransE"]
