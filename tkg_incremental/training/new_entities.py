"""Initial values of entities that appear at a step, and their warm-up."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.data import Timeline
from tkg_incremental.loader import NegativeSampler, TermBatch, TKGBatch
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import TIME
from tkg_incremental.ops.rows import look_up
from tkg_incremental.seeding import make_generator
from tkg_incremental.strategies.terms import cross_entropy
from tkg_incremental.training.settings import NewEntities

# Maximum number of new entities used as negatives per batch.
_MAX_NEW_NEGATIVES = 1_000


def initialize_new_entities(
    model: TKGModel,
    timeline: Timeline,
    time: int,
    how: NewEntities,
    sampler: NegativeSampler,
    seed: int,
    communicator: Communicator = LOCAL,
) -> None:
    """Initial values of the step and of the entities that appear at it.

    An entity may occur in validation or test quads before it has a train fact. It is initialized when it first occurs,
    and warmed up from there when it has a train fact.

    Args:
        model: The model.
        timeline: The graph.
        time: The step.
        how: ``"initialize"``, ``"warm_up"`` or ``"keep"``.
        sampler: Draws negatives.
        seed: Seed of the run.
        communicator: The processes that train the model.
    """
    if how == "keep":
        return
    generator = make_generator(seed, "new entities", time)
    new = timeline.order[int(timeline.num_known[time - 1]) : int(timeline.num_known[time])]
    model.initialize("entity", new, generator)
    model.initialize_step(time, generator)
    if how == "warm_up":
        warm_up(
            model, timeline, time, sampler, make_generator(seed, "warm up", time, device=model.device), communicator
        )


def new_entities_of(timeline: Timeline, time: int) -> tuple[Tensor, Tensor]:
    """Entities with their first train facts at this step, ``[n]`` ascending, and these facts, ``[m, 4]``."""
    quads = timeline.observed.added(time)
    ends = quads[:, ::2]
    is_new = timeline.first_observed[ends] == time
    return torch.unique(ends[is_new]), quads[is_new.any(1)]


def warm_up(
    model: TKGModel,
    timeline: Timeline,
    time: int,
    sampler: NegativeSampler,
    generator: torch.Generator,
    communicator: Communicator = LOCAL,
    epochs: int = 30,
    lr: float = 1e-2,
    batch_size: int = 2048,
) -> None:
    r"""Trains the rows of new entities with all other rows frozen.

    A step moves rows by about the learning rate per update and ends after a few epochs. New entities then stay close to
    their initial values and are hardly ever ranked high. With all other rows frozen they can take long steps without
    any forgetting. The loss is :math:`L_{CE}` of their own facts plus :math:`L_{CE}` of current facts with the new
    entities as negatives, so that they do not outrank true answers.

    No row gets longer than the mean of the entities known before. The rows of a base model that was trained briefly are
    short: 30 epochs would make those of new entities several times as long, and they would outrank all others.

    Args:
        model: The model.
        timeline: The graph.
        time: The step at which they have their first train facts.
        sampler: Draws the negatives of their facts.
        generator: Source of randomness.
        communicator: The processes that train the model.
        epochs: Number of epochs over their facts.
        lr: Learning rate of their rows.
        batch_size: Quads per batch, of their facts and of current facts each.
    """
    entities, facts = new_entities_of(timeline, time)
    with torch.no_grad():
        learnt = {name: model.rows(name, entities).clone().requires_grad_() for name in model.tables("entity")}
    if not len(entities) or not learnt:
        return

    def train() -> dict[str, Tensor]:
        learner = model.with_rows_of(partial(_rows_with_new, model, entities, learnt))
        optimizer = torch.optim.Adam(learnt.values(), lr)
        limits = {name: _mean_norm(model, name, timeline, time) for name in learnt}
        current = timeline.observed.at(time)
        for _ in range(epochs):
            order = torch.randperm(len(facts), generator=generator, device=facts.device)
            for index in order.split(batch_size):
                own = TermBatch(facts[index], sampler.draw(facts[index], 500, generator))
                others = _against_new(current, entities, sampler, generator, batch_size)
                encoded = learner.encode(TKGBatch([own, others], sampler), timeline)
                loss = sum(cross_entropy(term, 1 / len(term.quads)) for term in encoded if term is not None)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[union-attr]
                optimizer.step()
                with torch.no_grad():
                    for name, rows in learnt.items():
                        kept = model.constrain(name, rows)
                        rows.copy_(torch.renorm(kept, 2, 0, limits[name]))
        return {name: rows.detach() for name, rows in learnt.items()}

    # Copies of a model take the first process' values: others might differ in the last bit. Sharded tables are looked
    # up by all processes together, and each process keeps its own rows.
    values = train() if model.is_sharded else communicator.load(train, model.device)
    for name, trained in values.items():
        model.put(name, entities, trained)


@torch.no_grad()
def _mean_norm(model: TKGModel, name: str, timeline: Timeline, time: int) -> float:
    """Mean norm of a table's rows of the entities that had train facts before a step; infinite if there are none.

    Of sharded tables, each process sums the norms of its own rows: none holds the others.
    """
    norms = model.tables()[name].norm(dim=1)
    ids = model.row_ids(name, torch.arange(len(norms), device=norms.device))
    ids = ids[ids < len(timeline.first_observed)]  # a table may have room for more
    norms = norms[: len(ids)][timeline.first_observed[ids] < time]
    if model.is_sharded:
        total, count = (
            float(model.sum_tables({name: value})) for value in (norms.double().sum().cpu(), torch.tensor(len(norms)))
        )
        return total / count if count else math.inf
    return float(norms.mean()) if len(norms) else math.inf


def _against_new(
    current: Tensor, entities: Tensor, sampler: NegativeSampler, generator: torch.Generator, size: int
) -> TermBatch:
    """A sample of current facts with some of the new entities as negatives."""
    chosen = torch.randperm(len(current), generator=generator, device=current.device)[:size]
    some = torch.randperm(len(entities), generator=generator, device=current.device)[:_MAX_NEW_NEGATIVES]
    quads = current[chosen]
    shared = torch.zeros_like(quads[:, TIME])
    lists = entities[some][None]
    return TermBatch(quads, sampler.from_lists(quads, lists, quads[:1, TIME], shared, from_pool=False))


def _rows_with_new(model: TKGModel, entities: Tensor, learnt: dict[str, Tensor], name: str, index: Tensor) -> Tensor:
    """Rows of a table, ``[*] → [*, width]``, with those that new entities (ascending) learn in place of the table's."""
    with torch.no_grad():
        rows = model.rows(name, index)
    if name not in learnt:
        return rows
    place = torch.searchsorted(entities, index.contiguous()).clamp_(max=len(entities) - 1)
    where = (entities[place] == index).nonzero(as_tuple=True)
    return rows.index_put(where, look_up(learnt[name], place[where]))
