"""Learning a live graph: everything once, then only what changed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.records import OPEN, Change
from tkg_incremental.live.store import FactStore
from tkg_incremental.loader import CandidatePool, NegativeSampler
from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.encoding import EncodedTerm
from tkg_incremental.models.zoo import ZOO
from tkg_incremental.ops.answers import HEAD, TAIL, TIME
from tkg_incremental.seeding import derive_seed, make_generator
from tkg_incremental.strategies import CrossEntropy, Current, Given, History, Strategy, Term, UnlikelihoodLoss
from tkg_incremental.strategies.context import TrainingContext
from tkg_incremental.strategies.terms import Losses
from tkg_incremental.strategies.views import has_no_answer
from tkg_incremental.training.learner import StepLearner
from tkg_incremental.training.settings import LearningSettings

# Graphs with more facts than this are updated from a sample of their facts instead of all of them.
MAX_WHOLE = 300_000
# Graphs with more entities than this are trained with sampled negatives instead of all entities.
MAX_ONE_VS_ALL = 20_000
# The same for updates, whose cost should follow the change.
MAX_ONE_VS_ALL_UPDATE = 5_000
# At most this number of facts are learnt as ended because the clock moves past their end.
MAX_EXPIRED = 1_000


@dataclass(frozen=True)
class LiveSettings:
    """The tables ``[model]`` and ``[learning]`` of ``graph.toml``.

    Args:
        name: The model.
        hidden_channels: Width of its vectors.
        seed: Seed of everything random.
        epochs: Epochs of the first training; each visits every fact ``visits`` times.
        visits: Quads per fact and epoch.
        update_epochs: Epochs of an update before it is judged.
        rounds: Maximum number of times that an update is judged and continued.
        repeats: Visits of a changed fact per epoch of an update.
        current: Facts that hold now, per epoch of an update.
        replay: Quads of the past per epoch of an update. A graph with fewer facts visits each of them at random steps,
            new ones in each epoch; a larger one draws (fact, step) pairs uniformly.
        lr: Learning rate of Adagrad.
        n3: Weight of the N3 regularization.
        smoothness: Weight of the temporal smoothness.
        unlikelihood: Weight of the loss on facts that have ended or were retracted.
        batch_size: Quads per batch.
        accumulator: Initial sum of squared gradients of Adagrad in updates.
    """

    name: str = "TNTComplEx"
    hidden_channels: int = 128
    seed: int = 0
    epochs: int = 20
    visits: int = 10
    update_epochs: int = 3
    rounds: int = 20
    repeats: int = 5
    current: int = 1000
    replay: int = 5000
    lr: float = 0.1
    n3: float = 3e-3
    smoothness: float = 0.01
    unlikelihood: float = 0.5
    batch_size: int = 1000
    accumulator: float = 1e-6

    @classmethod
    def from_tables(cls, *tables: dict[str, Any]) -> LiveSettings:
        """From the tables of ``graph.toml``; unknown keys are refused."""
        values = {key: value for table in tables for key, value in table.items()}
        names = {field.name for field in fields(cls)}
        for key in values:
            if key not in names:
                raise ValueError(f"graph.toml has no option {key!r} (expected one of {', '.join(sorted(names))})")
        return cls(**values)

    @property
    def update_learning(self) -> LearningSettings:
        """How an update learns: rows without a part in what changed stay almost in place."""
        return replace(self.learning, accumulator=self.accumulator)

    @property
    def learning(self) -> LearningSettings:
        forever = 10**6  # epochs are counted by the caller, and nothing is validated
        return LearningSettings(
            epochs=forever,
            patience=forever,
            validate_every=forever,
            batch_size=self.batch_size,
            optimizer="adagrad",
            lr=self.lr,
            max_norm=None,
            n3=self.n3,
            smoothness=self.smoothness,
        )

    def check(self) -> None:
        """Refuses a model that is unknown, before anything is written."""
        if self.name not in ZOO:
            raise ValueError(f"model must be one of {', '.join(ZOO)} (got {self.name!r})")

    def make_model(self, num_entities: int, num_relations: int, num_steps: int) -> TKGModel:
        """A new model with reciprocal relations."""
        self.check()
        sizes = (num_entities, num_relations, num_steps)
        make: Callable[..., TKGModel] = ZOO[self.name]
        return make(*sizes, hidden_channels=self.hidden_channels, reciprocal=True, seed=self.seed)


@dataclass
class EndedFacts(UnlikelihoodLoss):
    """Unlikelihood of ended facts. Where nothing has replaced one, its answer must also score below the mean of the
    negatives: a question that has no answer any more must not list the last one, and the gradient of the unlikelihood
    vanishes before that."""

    def losses(self, encoded: EncodedTerm | None, context: TrainingContext) -> Losses:
        assert encoded is not None
        losses = super().losses(encoded, context)
        logits = encoded.logits()
        margin = logits[:, 0] - logits[:, 1:].mean(1)
        margin = margin[has_no_answer(context.timeline, encoded.quads).flatten()]
        below = self.weight * torch.nn.functional.softplus(margin).sum() / len(encoded.quads)
        return {"unlikelihood": losses["unlikelihood"] + below}


class ChangedFacts(NamedTuple):
    """Quads of the facts that an update changes, ``[n, 4]`` each."""

    added: Tensor
    ended: Tensor
    retracted: Tensor


def steps_of_facts(facts: Sequence[np.ndarray], clock: GraphClock) -> Tensor:
    """Facts ``[F, 5]`` in steps, without those that begin after the last step.

    Args:
        facts: Arrays of head, rel, tail, valid_from, valid_to (exclusive).
        clock: The time axis.
    """
    head, rel, tail, valid_from, valid_to = facts
    first = np.maximum(valid_from, clock.origin) - clock.origin
    last = np.minimum(valid_to - 1, clock.now) - clock.origin
    rows = np.stack([head, rel, tail, first, last], axis=1)[first <= last]
    return torch.from_numpy(np.ascontiguousarray(rows))


def whole_timeline(store: FactStore, clock: GraphClock) -> Timeline:
    """A timeline of all facts of the store."""
    arrays = store.facts_arrays()
    return make_timeline(steps_of_facts(arrays[1:], clock), store, clock)


def make_timeline(facts: Tensor, store: FactStore, clock: GraphClock) -> Timeline:
    nothing = torch.empty(0, 5, dtype=torch.long)
    sizes = max(1, store.num_entities), max(1, store.num_relations)
    return Timeline({"train": facts, "val": nothing, "test": nothing}, *sizes, clock.axis)


def partial_timeline(store: FactStore, clock: GraphClock, changed: ChangedFacts, replay: Tensor) -> Timeline:
    """A timeline of the changed facts, the facts that share a query with them, and replayed quads: what an update of a
    large graph needs. True answers outside of it may be drawn as negatives, with a probability that is negligible."""
    rows = {(*quad, quad[3]) for quad in replay.tolist()}
    for head, rel, tail, _ in torch.cat(changed).tolist():
        rivals = [*store.answers(head, rel, None)[:200], *store.answers(None, rel, tail)[:200]]
        for fact in [*store.answers(head, rel, tail), *rivals]:
            until = OPEN if fact.valid_to is None else fact.valid_to
            first = max(fact.valid_from, clock.origin) - clock.origin
            last = min(until - 1, clock.now) - clock.origin
            if first <= last:
                rows.add((fact.head, fact.rel, fact.tail, first, last))
    facts = torch.tensor(sorted(rows), dtype=torch.long).view(-1, 5)
    return make_timeline(facts, store, clock)


def changed_facts(changes: Sequence[Change], store: FactStore, clock: GraphClock, visits: int = 5) -> ChangedFacts:
    """Quads of changes: an added fact at several steps of its interval, an ended one at steps since its end, and a
    retracted one at several steps at which it was said to hold."""
    added, ended, retracted = [], [], []
    for change in changes:
        head, tail = store.entity_id(change.head), store.entity_id(change.tail)
        rel = store.relation_id(change.rel)
        if head is None or rel is None or tail is None:
            continue
        holds = [
            (clock.step(i.valid_from), clock.step((OPEN if i.valid_to is None else i.valid_to) - 1))
            for i in store.intervals(head, rel, tail)
            if i.valid_from <= clock.now
        ]
        now = clock.num_steps - 1
        if change.op == "add":
            assert change.at is not None
            begin = clock.step(change.at)
            found = [(first, last) for first, last in holds if first <= begin <= last]
            for first, last in found[:1]:
                added += [(head, rel, tail, step) for step in _spread(max(first, begin), last, visits)]
        elif change.op == "end":
            assert change.at is not None
            # An end of the past is learnt for the time since then.
            steps = [step for step in _spread(clock.step(change.at), now, visits) if not _covers(holds, step)]
            ended += [(head, rel, tail, step) for step in steps]
        elif change.op == "retract":
            first = 0 if change.at is None else clock.step(change.at)
            steps = [step for step in _spread(first, now, visits) if not _covers(holds, step)]
            retracted += [(head, rel, tail, step) for step in steps]
    return ChangedFacts(*(torch.tensor(rows, dtype=torch.long).view(-1, 4) for rows in (added, ended, retracted)))


def expired_facts(store: FactStore, before: GraphClock, after: GraphClock) -> Tensor:
    """``[n, 4]`` facts that end because the clock moves past an end that was known before, at the last step."""
    sql = (
        "SELECT DISTINCT head, rel, tail FROM facts f WHERE valid_to > ? AND valid_to <= ? AND NOT EXISTS (SELECT 1 "
        "FROM facts g WHERE g.head = f.head AND g.rel = f.rel AND g.tail = f.tail "
        "AND g.valid_from <= ? AND (g.valid_to IS NULL OR g.valid_to > ?))"
    )
    found = store.connection.execute(sql, (before.now, after.now, after.now, after.now)).fetchall()
    found = random.Random(len(found)).sample(found, min(len(found), MAX_EXPIRED))
    return torch.tensor([(*row, after.num_steps - 1) for row in found], dtype=torch.long).view(-1, 4)


def facts_of_entities(entities: Iterable[int], store: FactStore, clock: GraphClock, visits: int = 5) -> Tensor:
    """``[n, 4]`` the facts of entities, each at several steps of its interval."""
    facts = sorted({fact for entity in entities for fact in store.neighbours(entity)})
    quads = []
    for fact in facts:
        if fact.valid_from <= clock.now:
            last = clock.step((OPEN if fact.valid_to is None else fact.valid_to) - 1)
            steps = _spread(clock.step(fact.valid_from), last, visits)
            quads += [(fact.head, fact.rel, fact.tail, step) for step in steps]
    return torch.tensor(quads, dtype=torch.long).view(-1, 4)


def _covers(intervals: Sequence[tuple[int, int]], step: int) -> bool:
    return any(first <= step <= last for first, last in intervals)


def _spread(first: int, last: int, count: int) -> list[int]:
    """At most ``count`` steps from first to last, both included."""
    return sorted({round(x) for x in np.linspace(first, last, count)})


def train_whole(model: TKGModel, timeline: Timeline, settings: LiveSettings, epochs: int) -> None:
    """Trains a model on all facts of a timeline."""
    time = timeline.num_steps - 1
    term = CrossEntropy(History(settings.visits), _negatives(timeline, MAX_ONE_VS_ALL))
    _run(_learner(model, timeline, time, [term], settings, MAX_ONE_VS_ALL, "train"), epochs, None)


def train_update(
    model: TKGModel,
    timeline: Timeline,
    changed: ChangedFacts,
    replay: Tensor,
    settings: LiveSettings,
    seed: int,
    is_learnt: Callable[[], bool],
) -> dict[str, Tensor]:
    """Trains a model on what changed, on facts that hold, and on the past.

    Args:
        model: The model, with room for new entities, relations and steps.
        timeline: The facts.
        changed: What changed.
        replay: ``[n, 4]`` quads of the past.
        settings: How to learn.
        seed: Seed of the update.
        is_learnt: Called after each round; training ends if it returns :obj:`True`.

    Returns:
        For each table the rows that were moved.
    """
    time, negatives = timeline.num_steps - 1, _negatives(timeline, MAX_ONE_VS_ALL_UPDATE)
    changed, replay = ChangedFacts(*(_known(timeline, quads) for quads in changed)), _known(timeline, replay)
    terms: list[Term] = [CrossEntropy(Current(settings.current), negatives, name="CE current")]
    if len(changed.added):
        terms.append(CrossEntropy(Given(changed.added.repeat(settings.repeats, 1)), negatives))
    facts = len(timeline.observed)
    if 0 < facts <= settings.replay:
        # Every fact at new steps in each epoch: short facts, such as terms of office, are not lost among long ones.
        terms.append(CrossEntropy(History(max(1, settings.replay // facts)), negatives, name="RCE"))
    elif len(replay):
        terms.append(CrossEntropy(Given(replay), negatives, name="RCE"))
    over = torch.cat([changed.ended, changed.retracted])
    if len(over) and settings.unlikelihood:
        view = Given(over.repeat(settings.repeats, 1))
        terms.append(EndedFacts(view, 100, settings.unlikelihood, open_only=False))
    learner = _learner(model, timeline, time, terms, settings, MAX_ONE_VS_ALL_UPDATE, "update", seed)
    _run(learner, settings.update_epochs * settings.rounds, is_learnt, settings.update_epochs)
    assert not isinstance(learner.optimizer, torch.optim.Adam)
    return {name: index.values.clone() for name, index in learner.optimizer.rows.index.items()}


def _known(timeline: Timeline, quads: Tensor) -> Tensor:
    """The quads whose entities have a fact at their step or before it. Only those are encoded."""
    first = timeline.first_seen[quads[:, [HEAD, TAIL]]].amax(1)
    return quads[first <= quads[:, TIME]]


def _negatives(timeline: Timeline, one_vs_all: int) -> Any:
    return "all" if timeline.num_entities <= one_vs_all else 500


def _learner(
    model: TKGModel,
    timeline: Timeline,
    time: int,
    terms: Sequence[Term],
    settings: LiveSettings,
    one_vs_all: int,
    purpose: str,
    seed: int = 0,
) -> StepLearner:
    mixed = derive_seed(settings.seed, purpose, seed)
    # A question about the past ranks entities that appeared later, too, so they must be learnt as wrong answers.
    timeline = timeline.with_known_until(time)
    size = None if timeline.num_entities <= one_vs_all else 5_000
    sampler = NegativeSampler(timeline, CandidatePool.draw(timeline, time, size, mixed))
    generator = make_generator(mixed, "batches", device=model.device)
    strategy = Strategy(terms, "live")
    learning = settings.update_learning if purpose == "update" else settings.learning
    return StepLearner(model, timeline, time, strategy, learning, sampler, generator, lambda: math.nan)


def _run(learner: StepLearner, epochs: int, is_over: Callable[[], bool] | None, check_every: int = 1) -> None:
    for epoch in range(1, epochs + 1):
        if learner.loader.num_quads == 0:
            return
        learner.run_epoch()
        if is_over is not None and epoch % check_every == 0 and is_over():
            return
