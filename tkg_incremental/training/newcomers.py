"""Where entities that appear at a step start, and how they settle while everybody else stands still."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot
from tkg_incremental.distributed.sharded import is_sharded
from tkg_incremental.distributed.world import ALONE, World
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


def welcome(
    model: TKGModel,
    snapshot: Snapshot,
    how: NewEntities,
    negatives: NegativeSampler,
    seed: int,
    world: World = ALONE,
) -> None:
    """Gives entities that appear at a step, and the step itself, the values they start with.

    An entity may be seen in validation or test rows before it has a train fact. It is drawn anew when it is first seen,
    and settles from where it is then when it has one.

    Args:
        model: The model.
        snapshot: The step.
        how: ``"fresh"`` from the initial distribution, ``"settled"`` from there on, or ``"kept"`` as they are.
        negatives: Draws negatives.
        seed: Seed of what is drawn.
        world: The processes that have the model.
    """
    if how == "kept":
        return
    line, time = snapshot.timeline, snapshot.time
    fresh = torch.Generator().manual_seed(seed)
    new = line.order[int(line.num_known[time - 1]) : int(line.num_known[time])]
    model.encoder.initialise("entity", new, fresh)
    model.encoder.initialise("time", torch.tensor([time]), fresh)
    if how == "settled":
        settle(model, snapshot, negatives, torch.Generator(model.device).manual_seed(seed), world=world)


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
    world: World = ALONE,
) -> None:
    r"""Learns the rows of newcomers, and no others.

    A step moves rows by a thousandth at an update and ends after a few epochs. That suits what is known, and leaves
    newcomers where they began, below everybody else: hardly a question is answered with them. Alone they can take long
    steps, since nothing that is known can be forgotten by it. Two losses say where to: :math:`L_{CE}` of their own
    facts, and :math:`L_{CE}` of current facts against the newcomers, so that they do not stand in the way of others.

    Args:
        model: The model.
        snapshot: The step at which they have their first facts.
        negatives: Draws the negatives of their facts.
        generator: Source of randomness.
        epochs: How often their facts are gone through.
        lr: Learning rate of their rows.
        batch_size: Rows in a batch, of their facts and of current ones each.
        world: The processes that have the model.
    """
    newcomers, facts = newcomers_of(snapshot)
    rows = _Newcomers(model.encoder, newcomers)
    if not len(newcomers) or not rows.by_table:
        return

    def learn() -> dict[str, Tensor]:
        among_frozen = TKGModel(model.encoder.with_rows_of(rows), model.decoder)
        step = Step(snapshot, among_frozen, among_frozen, negatives, generator)
        optimizer = torch.optim.Adam(rows.by_table.values(), lr)
        current = snapshot.current
        for _ in range(epochs):
            for batch in facts[some_of(len(facts), len(facts), generator, facts.device)].split(batch_size):
                others = current[some_of(len(current), batch_size, generator, current.device)]
                loss = link_loss(step, batch, 500) + _intrusion(step, others, newcomers)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                rows.restore_units()
        return {name: values.detach() for name, values in rows.by_table.items()}

    # Copies of a model take the first one's values: theirs might differ in the last bit. Where tables are spread over
    # processes, these have to ask for rows together, and each keeps its own.
    for name, values in (learn() if is_sharded(model) else world.load(learn, model.device)).items():
        model.encoder.put(name, newcomers, values)


def _intrusion(step: Step, rows: Tensor, newcomers: Tensor) -> Tensor:
    """Current facts against some of the newcomers, both sides, mean over the facts."""
    some = newcomers[some_of(len(newcomers), _AT_A_TIME, step.generator, newcomers.device)]
    pool = Pool(step.timeline)
    columns, the_only_one = step.timeline.column_of[some][None], torch.zeros_like(rows[:, TIME])
    return sampled_loss(step, rows, from_lists(step.timeline, rows, columns, rows[:1, TIME], the_only_one, pool))


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

    @torch.no_grad()
    def restore_units(self) -> None:
        for name, rows in self.by_table.items():
            rows.copy_(self._encoder.as_kept(name, rows))

    def look_up(self, name: str, index: Tensor) -> Tensor:
        with torch.no_grad():
            rows = self._encoder.rows(name, index)
        if name not in self.by_table:
            return rows
        place = torch.searchsorted(self._entities, index.contiguous()).clamp_(max=len(self._entities) - 1)
        where = (self._entities[place] == index).nonzero(as_tuple=True)
        return rows.index_put(where, look_up(self.by_table[name], place[where]))
