"""Where entities that appear at a step start, and how they settle while everybody else stands still."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoder import Encoder
from tkg_incremental.ops.answers import TIME
from tkg_incremental.ops.rows import look_up
from tkg_incremental.sampling import NegativeSampler, Pool
from tkg_incremental.sampling.replay import some_of
from tkg_incremental.strategies import Step
from tkg_incremental.strategies.candidates import from_lists, link_loss, sampled_loss

#: How entities that appear at a step start.
NewEntities = Literal["settled", "fresh", "kept"]
NEW_ENTITIES: tuple[NewEntities, ...] = ("settled", "fresh", "kept")

# So many newcomers at a time, at the most, are held against a batch of current facts.
_AT_A_TIME = 1_000


def welcome(model: TKGModel, snapshot: Snapshot, how: NewEntities, negatives: NegativeSampler, seed: int) -> None:
    """Gives entities that appear at a step, and the step itself, the values they start with.

    Args:
        model: The model.
        snapshot: The step.
        how: ``"fresh"`` from the initial distribution, ``"settled"`` from there on, or ``"kept"`` as they are.
        negatives: Draws negatives.
        seed: Seed of what is drawn.
    """
    if how == "kept":
        return
    line, time = snapshot.timeline, snapshot.time
    fresh = torch.Generator().manual_seed(seed)
    new = line.order[int(line.num_known[time - 1]) : int(line.num_known[time])]
    model.encoder.initialise("entity", new, fresh)
    model.encoder.initialise("time", torch.tensor([time]), fresh)
    if how == "settled":
        settle(model, snapshot, negatives, torch.Generator(model.device).manual_seed(seed))


def newcomers_of(snapshot: Snapshot) -> tuple[Tensor, Tensor]:
    """Entities that have their first train facts at this step, ``[n]`` ascending, and these facts, ``[m, 4]``."""
    rows = snapshot.added
    ends = rows[:, ::2]
    is_new = snapshot.timeline.first_observed[ends] == snapshot.time
    return torch.unique(ends[is_new]), rows[is_new.any(1)]


def settle(
    model: TKGModel,
    snapshot: Snapshot,
    negatives: NegativeSampler,
    generator: torch.Generator,
    epochs: int = 30,
    lr: float = 1e-2,
    batch_size: int = 2048,
) -> None:
    r"""Learns the rows of newcomers, and no others.

    A step moves rows by a thousandth at an update and ends after a few epochs. That suits what is known, and leaves
    newcomers where they began, below everybody else: no question is ever answered with them. Alone they can take long
    steps, since nothing that is known can be forgotten by it. Two losses say where to: :math:`L_{CE}` of their own
    facts, and :math:`L_{CE}` of current facts against the newcomers, so that they do not stand in the way of others.

    Args:
        model: The model; newcomers have their initial values.
        snapshot: The step at which they appear.
        negatives: Draws the negatives of their facts.
        generator: Source of randomness.
        epochs: How often their facts are gone through.
        lr: Learning rate of their rows.
        batch_size: Rows in a batch, of their facts and of current ones each.
    """
    newcomers, facts = newcomers_of(snapshot)
    if not len(newcomers):
        return
    rows = _Newcomers(model.encoder, newcomers)
    among_frozen = TKGModel(model.encoder.with_rows_of(rows), model.decoder)
    step = Step(snapshot, among_frozen, among_frozen, negatives, generator)
    optimizer = torch.optim.Adam(rows.by_table.values(), lr)
    current = snapshot.current
    for _ in range(epochs):
        for batch in facts[_shuffled(len(facts), generator)].split(batch_size):
            others = current[some_of(len(current), batch_size, generator, current.device)]
            loss = link_loss(step, batch, 500) + _intrusion(step, others, newcomers)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for name, values in rows.by_table.items():
        model.encoder.put(name, newcomers, values.detach())


def _intrusion(step: Step, rows: Tensor, newcomers: Tensor) -> Tensor:
    """Current facts against some of the newcomers, both sides, mean over the facts."""
    some = newcomers[some_of(len(newcomers), _AT_A_TIME, step.generator, newcomers.device)]
    pool = Pool(step.timeline)
    columns, the_only_one = step.timeline.column_of[some][None], torch.zeros_like(rows[:, TIME])
    return sampled_loss(step, rows, from_lists(step.timeline, rows, columns, rows[:1, TIME], the_only_one, pool))


def _shuffled(count: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)


class _Newcomers:
    """Rows of newcomers, which learn, in the place of those in the tables, which do not.

    Args:
        encoder: Has the tables.
        entities: ``[n]`` ascending.
    """

    def __init__(self, encoder: Encoder, entities: Tensor) -> None:
        self._encoder, self._entities = encoder, entities
        names = [name for name, axis in encoder.axes.items() if axis == "entity"]
        with torch.no_grad():
            self.by_table = {name: encoder.rows(name, entities).clone().requires_grad_() for name in names}

    def look_up(self, name: str, index: Tensor) -> Tensor:
        with torch.no_grad():
            rows = self._encoder.rows(name, index)
        if name not in self.by_table:
            return rows
        place = torch.searchsorted(self._entities, index.contiguous()).clamp_(max=len(self._entities) - 1)
        where = (self._entities[place] == index).nonzero(as_tuple=True)
        return rows.index_put(where, look_up(self.by_table[name], place[where]))
