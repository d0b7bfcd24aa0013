r"""The model zoo: encoders × decoders, and the named combinations."""

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.decoders import ComplEx, DistMult, SimplE, TransE
from tkg_incremental.models.encoder import Encoder
from tkg_incremental.models.encoders import DiachronicEncoder, HyperplaneEncoder, StaticEncoder
from tkg_incremental.models.saving import load_model, save_model
from tkg_incremental.models.zoo import (
    DE,
    ZOO,
    CalendarDE,
    ChronoR,
    HyTE,
    Static,
    TComplEx,
    TeRo,
    TNTComplEx,
    TTransE,
    register_model,
)

__all__ = classes = [
    "DE",
    "ZOO",
    "CalendarDE",
    "ChronoR",
    "ComplEx",
    "Decoder",
    "DiachronicEncoder",
    "DistMult",
    "Encoder",
    "HyTE",
    "HyperplaneEncoder",
    "SimplE",
    "Static",
    "StaticEncoder",
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
