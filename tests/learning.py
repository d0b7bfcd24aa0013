"""Small models and steps for tests of learning, in double precision, so that they equal the oracles."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.loader import NegativeSampler, TermBatch, TKGBatch
from tkg_incremental.models import DE, HyTE, Static, TKGModel
from tkg_incremental.ops.answers import TIME
from tkg_incremental.strategies import Losses, Term, TrainingContext

#: All encoders, all decoders, all similarities.
MODELS = ("DE complex", "DE distmult", "DE simple", "DE transe", "HyTE", "Static complex", "Static transe")


def small_model(name: str, num_entities: int, num_relations: int, num_steps: int, seed: int = 0) -> TKGModel:
    """A model of four channels with tables of standard normal numbers."""
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
def stir(model: torch.nn.Module, seed: int) -> None:
    """Fills all tables with standard normal numbers."""
    generator = torch.Generator().manual_seed(seed)
    for table in model.parameters():
        table.copy_(torch.randn(table.shape, dtype=table.dtype, generator=generator))


class Lesson:
    """One step of training whose model differs from the previous one, without a learner.

    Args:
        timeline: The graph.
        time: The step.
        name: One of :data:`MODELS`.
        seed: Seed of the model and of the draws.
        stride: One entity in ``stride`` is in the candidate pool.
        together: Whether the encoder may encode the whole pool; if not, distinct pairs are encoded.
    """

    def __init__(
        self,
        timeline: Timeline,
        time: int,
        name: str = "DE complex",
        seed: int = 0,
        stride: int = 1,
        together: bool = True,
    ) -> None:
        previous, self.model = (model_for(timeline, name, seed + i) for i in range(2))
        self.model.encodes_together = previous.encodes_together = together
        self.sampler = NegativeSampler(timeline, stride, seed % min(stride, timeline.num_entities))
        self.generator = torch.Generator().manual_seed(seed)
        self.context = TrainingContext(timeline, time, self.model, previous.frozen_copy())

    @property
    def timeline(self) -> Timeline:
        return self.context.timeline

    @property
    def previous(self) -> TKGModel:
        return self.context.previous

    def draw(self, term: Term, quads: Tensor) -> TermBatch:
        """The quads by time, with candidates."""
        quads = quads[torch.argsort(quads[:, TIME], stable=True)]
        return TermBatch(quads, term.draw(quads, self.sampler, self.generator))

    def batch(self, terms: Sequence[Term], quads: Sequence[Tensor | None]) -> TKGBatch:
        parts = [None if some is None else self.draw(term, some) for term, some in zip(terms, quads, strict=True)]
        return TKGBatch(parts, self.sampler)

    def losses(self, terms: Sequence[Term], batch: TKGBatch) -> Losses:
        """The losses of all terms by name."""
        encoded = self.model.encode(batch, self.timeline)
        self.context.terms = encoded
        losses: Losses = {}
        for term, part in zip(terms, encoded, strict=True):
            if term.view is None or part is not None:
                losses |= term.losses(part, self.context)
        return losses

    def learn(self, term: Term, quads: Tensor | None = None) -> Losses:
        """The losses of one term for quads with new candidates."""
        return self.losses([term], self.batch([term], [quads]))
