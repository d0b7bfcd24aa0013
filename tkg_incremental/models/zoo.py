"""The named models by name."""

from __future__ import annotations

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.calendar_de import CalendarDE
from tkg_incremental.models.chronor import ChronoR
from tkg_incremental.models.de import DE
from tkg_incremental.models.hyte import HyTE
from tkg_incremental.models.static import Static
from tkg_incremental.models.tcomplex import TComplEx
from tkg_incremental.models.tero import TeRo
from tkg_incremental.models.tntcomplex import TNTComplEx
from tkg_incremental.models.ttranse import TTransE

#: The models that can be saved and loaded by name. A user's class can be added with :func:`register_model`.
ZOO: dict[str, type[TKGModel]] = {
    model.__name__: model for model in (DE, HyTE, Static, TComplEx, TNTComplEx, ChronoR, TTransE, TeRo, CalendarDE)
}


def register_model(model: type[TKGModel]) -> type[TKGModel]:
    """Adds a class to the zoo, so that its models can be saved and loaded. Usable as a decorator.

    Its constructor must take ``num_entities``, ``num_relations`` and ``num_steps``, and plain values for the rest.
    """
    if model.__name__ in ZOO and ZOO[model.__name__] is not model:
        raise ValueError(f"model must have a name that is not in the zoo (got {model.__name__!r})")
    ZOO[model.__name__] = model
    return model
