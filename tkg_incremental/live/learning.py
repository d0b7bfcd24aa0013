"""Learning a live graph: everything once, then only what changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data import LazyQuads, Timeline
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.quads import ChangedFacts
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.ops.answers import FIRST, HEAD, LAST, REL, SIDES, TAIL, TIME
from tkg_incremental.seeding import derive_seed, make_generator
from tkg_incremental.strategies import CrossEntropy, Current, Given, History, Strategy, Term, UnlikelihoodLoss
from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.terms import Losses
from tkg_incremental.strategies.views import has_no_answer
from tkg_incremental.training.learner import StepLearner
from tkg_incremental.training.settings import LearningSettings

#: Initial sums of squared gradients of rows of a table, ``[n] → [n, 1]``.
InitialSums = Callable[[str, Tensor], Tensor]

# Graphs with more entities than this are trained with sampled negatives instead of all entities, in less time for as
# many facts that rank first.
MAX_ONE_VS_ALL = 2_000
# The same for updates, whose cost should follow the change.
MAX_ONE_VS_ALL_UPDATE = 5_000
# Entities that negatives of an update are drawn from, so that few rows move.
POOL_SIZE = 5_000
# Negatives that the quads of a batch share, or of a quad where the vectors of entities depend on time.
NUM_NEGATIVES = 500


@dataclass
class EndedFacts(UnlikelihoodLoss):
    """Unlikelihood of ended facts. Where nothing has replaced one, its answer must also score below the mean of the
    negatives: a question that has no answer any more must not list the last one, and the gradient of the unlikelihood
    vanishes before that.

    Args:
        entities_only: Only vectors of entities are learnt. The relations and the last step, at which all ended facts
            lie, are shared by facts that an update does not visit.
    """

    entities_only: bool = False

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert encoded is not None
        if self.entities_only:
            model, (rel, time) = encoded.model, (encoded.quads[:, REL], encoded.quads[:, TIME])
            ends = zip(encoded.ends, SIDES, strict=True)
            encoded.query = torch.cat(
                [model.query_of(end, model.encode_relation(rel, time, side).detach(), side) for end, side in ends]
            )
        losses = super().losses(encoded, context)
        logits = encoded.logits()
        margin = logits[:, 0] - logits[:, 1:].mean(1)
        margin = margin[has_no_answer(context.timeline, encoded.quads).flatten()]
        below = self.weight * torch.nn.functional.softplus(margin).sum() / len(encoded.quads)
        return {"unlikelihood": losses["unlikelihood"] + below}


def train_whole(
    model: TKGModel, timeline: Timeline, settings: LiveSettings, epochs: int, on_epoch: Callable[[], object]
) -> None:
    """Trains a model on all facts of a timeline.

    Args:
        model: The model.
        timeline: The facts.
        settings: How to learn.
        epochs: Number of epochs.
        on_epoch: Called after each epoch.
    """
    term = CrossEntropy(History(settings.visits), **_negatives(model, timeline, MAX_ONE_VS_ALL))
    learner = _learner(model, timeline, [term], settings.learning, None, derive_seed(settings.seed, "train", 0))
    for _ in range(epochs if learner.loader.num_quads else 0):
        learner.run_epoch()
        on_epoch()


def train_update(
    model: TKGModel,
    timeline: Timeline,
    changed: ChangedFacts,
    replay: Tensor,
    settings: LiveSettings,
    seed: int,
    judge: Callable[[], tuple[float, bool]],
    initial_sums: InitialSums | None = None,
) -> dict[str, Tensor]:
    """Trains a model on what changed, on facts that hold, and on the past, and keeps the best round.

    Args:
        model: The model, with room for new entities, relations and steps.
        timeline: The facts.
        changed: What changed.
        replay: ``[n, 4]`` quads of the past.
        settings: How to learn.
        seed: Seed of the update.
        judge: Called after each round: how good the model is, and whether the round is the last.
        initial_sums: How far rows may move, if the replayed quads are a sample of a graph with many more facts.

    Returns:
        For each table the rows that were moved.
    """
    negatives = _negatives(model, timeline, MAX_ONE_VS_ALL_UPDATE)
    changed, replay = ChangedFacts(*(_known(timeline, quads) for quads in changed)), _known(timeline, replay)
    mixed = derive_seed(settings.seed, "update", seed)
    quads = quads_to_learn(timeline, changed, None if initial_sums is None else replay, settings, mixed)
    terms: list[Term] = [CrossEntropy(Given(quads), **negatives)]
    over = torch.cat([changed.ended, changed.retracted])
    if len(over) and settings.unlikelihood:
        view = Given(over.repeat(settings.repeats, 1))
        entities_only = initial_sums is not None
        terms.append(EndedFacts(view, 100, settings.unlikelihood, open_only=False, entities_only=entities_only))
    pool = None if negatives["negatives"] == "all" else POOL_SIZE
    is_last = False

    def validate() -> float:
        nonlocal is_last
        value, is_last = judge()
        return value

    learner = _learner(model, timeline, terms, settings.update_learning, pool, mixed, validate, initial_sums)
    while not (learner.is_finished or is_last):
        learner.run_epoch()
    learner.finish()
    assert not isinstance(learner.optimizer, torch.optim.Adam)
    return learner.optimizer.rows.moved()


def quads_to_learn(
    timeline: Timeline, changed: ChangedFacts, replay: Tensor | None, settings: LiveSettings, seed: int
) -> LazyQuads:
    """What an update learns as true: added facts, facts that hold now, the past, and the past of facts that have ended.

    One term learns all of them, so that every quad has the same weight. In a sum of several means, which outweighs the
    regularization, facts that were not learnt would be predicted worse with each update.

    Args:
        timeline: The facts.
        changed: What changed.
        replay: ``[n, 4]`` quads of the past; without them, every fact is visited.
        settings: How to learn.
        seed: Seed of the sample of facts that hold now.
    """
    current = Current(settings.current).select(timeline, timeline.num_steps - 1, make_generator(seed, "current"))
    everything, former = timeline.observed.facts, former_facts(timeline, changed.ended)
    # What lowers the score of a fact after its end lowers it at earlier steps, too, the last one most of all.
    last = former.clone()
    last[:, FIRST] = last[:, LAST]
    if replay is None:
        # Every fact at new steps in each epoch: short facts, such as terms of office, are not lost among long ones.
        past = everything, max(2, 2 * settings.replay // max(1, len(everything)))
    else:
        past = one_step_facts(replay), 1
    # More often than the others: until they are learnt, an update goes on and visits all others again.
    added = one_step_facts(changed.added.repeat(2 * settings.repeats, 1))
    parts = [(added, 1), (one_step_facts(current), 1), (torch.cat([former, last]), settings.repeats), past]
    counts = [(facts[:, LAST] - facts[:, FIRST] + 1).clamp(max=visits) for facts, visits in parts]
    return LazyQuads(torch.cat([facts for facts, _ in parts]), torch.cat(counts))


def _known(timeline: Timeline, quads: Tensor) -> Tensor:
    """The quads whose entities have a fact at their step or before it. Only those are encoded."""
    first = timeline.first_seen[quads[:, [HEAD, TAIL]]].amax(1)
    return quads[first <= quads[:, TIME]]


def former_facts(timeline: Timeline, ended: Tensor) -> Tensor:
    """Facts ``[n, 5]`` of the triples that have ended."""

    def key(rows: Tensor) -> Tensor:
        return (rows[:, HEAD] * timeline.num_relations + rows[:, REL]) * timeline.num_entities + rows[:, TAIL]

    facts = timeline.observed.facts
    return facts[torch.isin(key(facts), key(ended))]


def _negatives(model: TKGModel, timeline: Timeline, one_vs_all: int) -> dict[str, Any]:
    """How a cross-entropy chooses negatives: all entities, or a sample."""
    if timeline.num_entities <= one_vs_all:
        return {"negatives": "all"}
    if model.static_entities:
        return {"negatives": NUM_NEGATIVES, "shared": "batch"}
    return {"negatives": NUM_NEGATIVES}


def _learner(
    model: TKGModel,
    timeline: Timeline,
    terms: Sequence[Term],
    learning: LearningSettings,
    pool: int | None,
    seed: int,
    validate: Callable[[], float] = lambda: math.nan,
    initial_sums: InitialSums | None = None,
) -> StepLearner:
    time = timeline.num_steps - 1
    # A question about the past ranks entities that appeared later, too, so they must be learnt as wrong answers.
    timeline = timeline.with_known_until(time)
    sampler = NegativeSampler.with_pool(timeline, time, pool, seed)
    generator = make_generator(seed, "batches", device=model.device)
    strategy = Strategy(terms, "live")
    parts = strategy, learning, sampler, generator, validate
    return StepLearner(model, timeline, time, *parts, initial_sums=initial_sums)
