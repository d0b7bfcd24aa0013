r"""How entities and relations get their vectors at a step."""

from tkg_incremental.models.encoders.calendar import CalendarEncoder
from tkg_incremental.models.encoders.chronor import ChronoREncoder
from tkg_incremental.models.encoders.diachronic import DiachronicEncoder
from tkg_incremental.models.encoders.hyperplane import HyperplaneEncoder
from tkg_incremental.models.encoders.static import StaticEncoder
from tkg_incremental.models.encoders.tcomplex import TComplExEncoder
from tkg_incremental.models.encoders.tero import TeRoEncoder
from tkg_incremental.models.encoders.tntcomplex import TNTComplExEncoder
from tkg_incremental.models.encoders.ttranse import TTransEEncoder

__all__ = classes = [
    "CalendarEncoder",
    "ChronoREncoder",
    "DiachronicEncoder",
    "HyperplaneEncoder",
    "StaticEncoder",
    "TComplExEncoder",
    "TNTComplExEncoder",
    "TTransEEncoder",
    "TeRoEncoder",
]
