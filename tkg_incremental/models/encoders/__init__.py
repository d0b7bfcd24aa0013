r"""How entities and relations get their vectors at a step."""

from tkg_incremental.models.encoders.diachronic import DiachronicEncoder
from tkg_incremental.models.encoders.hyperplane import HyperplaneEncoder
from tkg_incremental.models.encoders.static import StaticEncoder

__all__ = classes = ["DiachronicEncoder", "HyperplaneEncoder", "StaticEncoder"]
