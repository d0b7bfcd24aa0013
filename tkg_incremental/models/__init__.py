r"""The model zoo, and the base classes of models and decoders."""

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.calendar_de import CalendarDE
from tkg_incremental.models.chronor import ChronoR
from tkg_incremental.models.de import DE
from tkg_incremental.models.decoders import ComplEx, Decoder, DistMult, SimplE, TransE
from tkg_incremental.models.encoder import Encoder
from tkg_incremental.models.hyte import HyTE
from tkg_incremental.models.saving import load_model, save_model
from tkg_incremental.models.static import Static
from tkg_incremental.models.tcomplex import TComplEx
from tkg_incremental.models.tero import TeRo
from tkg_incremental.models.tntcomplex import TNTComplEx
from tkg_incremental.models.ttranse import TTransE
from tkg_incremental.models.zoo import ZOO, register_model

__all__ = classes = [
    "DE",
    "ZOO",
    "CalendarDE",
    "ChronoR",
    "ComplEx",
    "Decoder",
    "DistMult",
    "Encoder",
    "HyTE",
    "SimplE",
    "Static",
    "TComplEx",
    "TKGModel",
    "TNTComplEx",
    "TTransE",
    "TeRo",
    "TransE",
    "load_model",
    "register_model",
    "save_model",
]
