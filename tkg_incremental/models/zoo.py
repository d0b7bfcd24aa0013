"""The named models."""

from __future__ import annotations

import torch

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.decoder import Decoder
from tkg_incremental.models.decoders import ComplEx, DistMult, SimplE, TransE
from tkg_incremental.models.encoders import DiachronicEncoder, HyperplaneEncoder, StaticEncoder

DECODERS: dict[str, type[Decoder]] = {"complex": ComplEx, "distmult": DistMult, "simple": SimplE, "transe": TransE}


def make_decoder(name: str, hidden_channels: int) -> Decoder:
    """A decoder by its name, for vectors of some width."""
    if name not in DECODERS:
        raise ValueError(f"decoder must be one of {', '.join(DECODERS)} (got {name!r})")
    if name in ("complex", "simple") and hidden_channels % 2:
        raise ValueError(f"hidden_channels must be even with the decoder {name!r} (got {hidden_channels})")
    return DECODERS[name]()


class DE(TKGModel):
    r"""Diachronic embeddings (:class:`~tkg_incremental.models.encoders.DiachronicEncoder`) with the score of
    choice: DE-ComplEx by default, or DE-DistMult, DE-SimplE, DE-TransE.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: ``"complex"``, ``"distmult"``, ``"simple"`` or ``"transe"``.
        temporal_share: Share of the dimensions that depend on time.
        max_frequency: How fast they swing at first, at the most, in radians a step; by default as in the released TIE
            code, which depends on the number of entities.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        decoder: str = "complex",
        temporal_share: float = 0.5,
        max_frequency: float | None = None,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations, num_steps, hidden_channels)
        encoder = DiachronicEncoder(*sizes, temporal_share, max_frequency, generator)
        super().__init__(encoder, make_decoder(decoder, hidden_channels))
        self.options = {"hidden_channels": hidden_channels, "decoder": decoder, "temporal_share": temporal_share}
        if max_frequency is not None:
            self.options["max_frequency"] = max_frequency


class HyTE(TKGModel):
    r"""Hyperplanes in time (:class:`~tkg_incremental.models.encoders.HyperplaneEncoder`) with TransE and the
    :math:`L_1` norm.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        seed: Seed of the initial values.
    """

    def __init__(
        self, num_entities: int, num_relations: int, num_steps: int, hidden_channels: int = 128, seed: int = 0
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations, num_steps, hidden_channels)
        super().__init__(HyperplaneEncoder(*sizes, generator), TransE(p=1))
        self.options = {"hidden_channels": hidden_channels}


class Static(TKGModel):
    r"""Vectors that ignore time (:class:`~tkg_incremental.models.encoders.StaticEncoder`): the control.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors.
        decoder: ``"complex"``, ``"distmult"``, ``"simple"`` or ``"transe"``.
        seed: Seed of the initial values.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        decoder: str = "complex",
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (num_entities, num_relations, num_steps, hidden_channels)
        super().__init__(StaticEncoder(*sizes, generator), make_decoder(decoder, hidden_channels))
        self.options = {"hidden_channels": hidden_channels, "decoder": decoder}


ZOO: dict[str, type[TKGModel]] = {"DE": DE, "HyTE": HyTE, "Static": Static}
