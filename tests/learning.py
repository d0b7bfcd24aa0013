"""Small models and steps for tests of learning, in double precision: what oracles compute they compute exactly."""

from __future__ import annotations

import torch

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.models import DE, HyTE, Static, TKGModel
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.strategies import Step

#: One of each: all encoders, all decoders, all similarities.
MODELS = ("DE complex", "DE distmult", "DE simple", "DE transe", "HyTE", "Static complex")


def small_model(name: str, num_entities: int, num_relations: int, num_steps: int, seed: int = 0) -> TKGModel:
    """A model of four channels whose tables are spread widely enough for differences to show."""
    kind, *decoder = name.split()
    sizes = (num_entities, num_relations, num_steps, 4)
    if kind == "HyTE":
        model: TKGModel = HyTE(*sizes, seed=seed)
    else:
        model = {"DE": DE, "Static": Static}[kind](*sizes, decoder=decoder[0], seed=seed)
    model.double()
    stir(model, seed)
    return model


def model_for(timeline: Timeline, name: str = "DE complex", seed: int = 0) -> TKGModel:
    return small_model(name, timeline.num_entities, timeline.num_relations, timeline.num_steps, seed)


@torch.no_grad()
def stir(model: TKGModel, seed: int) -> None:
    """Fills all tables with standard normal numbers."""
    generator = torch.Generator().manual_seed(seed)
    for table in model.parameters():
        table.copy_(torch.randn(table.shape, dtype=table.dtype, generator=generator))


def step_for(timeline: Timeline, time: int, name: str = "DE complex", seed: int = 0, stride: int = 1) -> Step:
    """A step in which the model has already moved away from the previous one; one in ``stride`` is in the pool."""
    previous, model = (model_for(timeline, name, seed + i) for i in range(2))
    generator = torch.Generator().manual_seed(seed)
    negatives = NegativeSampler(timeline, Pool(timeline, stride, seed % min(stride, timeline.num_entities)))
    return Step(Snapshot(timeline, time), model, previous.frozen_copy(), negatives, generator)
