r"""The model zoo: encoders × decoders, and the named combinations."""

from tkg_incremental.models.base import Answer, TKGModel
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.decoders import ComplEx, DistMult, SimplE, TransE
from tkg_incremental.models.encoder import Encoder
from tkg_incremental.models.encoders import DiachronicEncoder, HyperplaneEncoder, StaticEncoder
from tkg_incremental.models.saving import load_model, save_model
from tkg_incremental.models.zoo import DE, HyTE, Static

__all__ = classes = [
    "DE",
    "Answer",
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
    "TKGModel",
    "TransE",
    "load_model",
    "save_model",
]
