import copy
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from learning import model_for
from timelines import make_timeline
from torch import Tensor

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.models import TKGModel
from tkg_incremental.sampling import NegativeSampler
from tkg_incremental.strategies import FT, TIE, TR, Forget, Link, Replay, Strategy
from tkg_incremental.training import LearningSettings, StepLearner, TrainingError

OPTIMIZERS = ("rowwise", "published")


@pytest.fixture
def timeline() -> Timeline:
    """At step 2 two facts begin and one ends; at step 3 nothing holds."""
    train = [(e, 0, e + 1, t) for t in range(2) for e in range(6)]
    train += [(e, 0, e + 1, 2) for e in range(5)] + [(0, 1, 7, 2), (3, 1, 7, 2)]
    return make_timeline(train, num_entities=8, num_relations=2, num_steps=4)


def learner_for(
    timeline: Timeline,
    time: int = 2,
    strategy: Strategy | None = None,
    validate: Callable[[], float] = lambda: float("nan"),
    model: TKGModel | None = None,
    **settings: Any,
) -> StepLearner:
    return StepLearner(
        model_for(timeline) if model is None else model,
        Snapshot(timeline, time),
        FT(negatives=3) if strategy is None else strategy,
        LearningSettings(**{"lr": 0.05, **settings}),
        NegativeSampler(timeline),
        torch.Generator().manual_seed(0),
        validate,
    )


def finish(learner: StepLearner) -> StepLearner:
    while not learner.is_over:
        learner.run_epoch()
    learner.finish()
    return learner


class Script:
    """Says the given validation values one after the other, and keeps the weights they were said of."""

    def __init__(self, values: Iterable[float]) -> None:
        self.values, self.weights = iter(values), list[dict[str, Tensor]]()
        self.model: TKGModel

    def __call__(self) -> float:
        self.weights.append(copy.deepcopy(self.model.state_dict()))
        return next(self.values)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("strategy", [FT(negatives=3), TIE(negatives=3, replay_size=5, replay_negatives=2)], ids=str)
def test_the_best_epoch_is_restored(timeline: Timeline, optimizer: str, strategy: Strategy) -> None:
    script = Script([10.0, 30.0, 20.0, 30.0, 99.0])
    script.model = model_for(timeline)
    learner = finish(
        learner_for(timeline, strategy=strategy, validate=script, model=script.model, optimizer=optimizer, patience=2)
    )
    assert learner.epoch == 4  # 99 is never reached
    assert learner.stopping.best_epoch == 2
    best = script.weights[1]
    assert all(torch.equal(best[name], value) for name, value in script.model.state_dict().items())
    assert not torch.equal(best["encoder.entity_vectors"], script.weights[3]["encoder.entity_vectors"])
    assert [record["val C@10"] for record in learner.history] == [10, 30, 20, 30]
    assert len(learner.seconds) == 4


def test_at_most_so_many_epochs(timeline: Timeline) -> None:
    assert finish(learner_for(timeline, validate=Improving(), epochs=3, patience=1)).epoch == 3


class Improving:
    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        self.value += 1
        return self.value


def test_without_validation_rows_the_loss_decides(timeline: Timeline) -> None:
    learner = finish(learner_for(timeline, strategy=FT(negatives="all"), epochs=30))
    losses = [record["CE"] for record in learner.history]
    assert losses[-1] < losses[0]
    assert learner.stopping.best == -min(losses)
    assert learner.stopping.best_epoch == losses.index(min(losses)) + 1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_all_terms_are_reported(timeline: Timeline, optimizer: str) -> None:
    strategy = TIE(negatives=3, replay_size=5, replay_negatives=2)
    record = learner_for(timeline, strategy=strategy, optimizer=optimizer).run_epoch()
    # But for the pull back, which is the optimiser's.
    assert set(record) == {"CE", "del", "RCE", "RKD", "val C@10"}


def test_nothing_to_learn(timeline: Timeline) -> None:
    for strategy in (FT(), TR(), Strategy([])):
        learner = learner_for(timeline, time=3, strategy=strategy)
        before = copy.deepcopy(learner.step.model.state_dict())
        assert learner.is_over
        finish(learner)
        assert (learner.epoch, learner.rows, learner.examples) == (0, 0, 0)
        assert all(torch.equal(before[name], value) for name, value in learner.step.model.state_dict().items())


def test_one_view_without_rows(timeline: Timeline) -> None:
    """At step 3 nothing is added, but there is something to forget and to replay."""
    learner = learner_for(timeline, time=3, strategy=TIE(negatives=3, replay_size=5))
    assert not learner.is_over
    assert set(learner.run_epoch()) == {"del", "RCE", "RKD", "val C@10"}


def test_batches_smaller_than_the_number_of_terms(timeline: Timeline) -> None:
    strategy = Strategy([Link(negatives=2), Forget(), Replay(negatives=2)])
    record = learner_for(timeline, strategy=strategy, batch_size=1).run_epoch()
    assert set(record) == {"CE", "del", "RCE", "RKD", "val C@10"}


def test_data_size(timeline: Timeline) -> None:
    learner = learner_for(timeline, strategy=TIE(replay_size=5))
    # Two added facts with 500 negatives a side, one deleted fact, five replayed ones with 50.
    assert learner.rows == 2 + 1 + 5
    assert learner.examples == 2 * 1000 + 1 + 5 * 100


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("strategy", "term"), [(FT(negatives=3), "CE"), (Strategy([Forget()]), "del"), (Strategy([Replay()]), "RCE")]
)
def test_a_loss_that_is_no_number(timeline: Timeline, optimizer: str, strategy: Strategy, term: str) -> None:
    model = model_for(timeline)
    model.encoder.tables()["relation_vectors"].data.fill_(float("nan"))
    learner = learner_for(timeline, strategy=strategy, model=model, optimizer=optimizer)
    with pytest.raises(TrainingError, match=rf"the loss term {term} became nan in epoch 1 of step 2 \(2\)"):
        learner.run_epoch()


def test_a_loss_without_end(timeline: Timeline) -> None:
    learner = learner_for(timeline, strategy=Strategy([Forget()]), model=model_for(timeline, "DE distmult"))
    for table in learner.step.model.parameters():
        table.data.fill_(1e200)
    with pytest.raises(TrainingError, match=r"the loss term del became (inf|nan)"):
        learner.run_epoch()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_same_bits_twice(timeline: Timeline, optimizer: str) -> None:
    strategy = TIE(negatives=3, replay_size=5, replay="frequency")
    first, second = (finish(learner_for(timeline, strategy=strategy, optimizer=optimizer, epochs=4)) for _ in range(2))
    assert repr(first.history) == repr(second.history)  # NaN is not equal to itself
    weights = second.step.model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in first.step.model.state_dict().items())


def test_new_entities_are_not_held_to_their_initial_values() -> None:
    """Temporal regularisation is about rows known at the step before: entity 2 and step 1 are new at step 1."""
    train = [(0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 2, 1)]
    timeline = make_timeline(train, num_entities=3, num_relations=1, num_steps=2)
    moved = {}
    for name in ("DE complex", "HyTE"):
        for strategy in (FT(negatives="all"), TR(negatives="all", drift=1e4)):
            model = model_for(timeline, name)
            before = copy.deepcopy(model.encoder.state_dict())
            # Without clipping: a gradient has a norm, and what is held back takes its share of it.
            finish(learner_for(timeline, 1, strategy, model=model, epochs=5, patience=5, max_norm=1e9, batch_size=1))
            tables = {"entity_vectors": 2} | ({"normals": 1} if name == "HyTE" else {})
            moved[name, strategy.name] = {
                table: (model.encoder.state_dict()[table] - before[table]).abs().max(1).values.tolist()
                for table in tables
            }
            for table, new in tables.items():
                assert moved[name, strategy.name][table][new] > 0.1, (name, strategy.name, table)
        assert max(moved[name, "TR"]["entity_vectors"][:2]) < max(moved[name, "FT"]["entity_vectors"][:2])


def test_settings() -> None:
    settings = LearningSettings()
    assert (settings.epochs, settings.patience, settings.batch_size, settings.lr) == (100, 20, 2048, 1e-3)
    for name in ("epochs", "patience", "batch_size"):
        with pytest.raises(ValueError, match=re.escape(f"{name} must be at least 1 (got 0)")):
            LearningSettings(**{name: 0})
    with pytest.raises(ValueError, match=r"optimizer must be one of rowwise, published \(got 'sgd'\)"):
        LearningSettings(optimizer="sgd")
    for lr in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="lr must be above 0"):
            LearningSettings(lr=lr)
