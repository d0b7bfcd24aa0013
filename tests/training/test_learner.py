import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from learning import MODELS, model_for
from oracles import ScoreOracle, TimelineOracle, drift
from timelines import make_timeline
from torch import Tensor, nn

from tkg_incremental.data import Timeline
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.models import TKGModel
from tkg_incremental.strategies import (
    FT,
    TIE,
    TR,
    CrossEntropy,
    DeletedFacts,
    Losses,
    Replay,
    ReplayOptions,
    Strategy,
    TemporalRegularization,
    Term,
    TrainingContext,
)
from tkg_incremental.training import LearningSettings, StepLearner
from tkg_incremental.training.settings import OPTIMIZERS

TRAIN = [(e, 0, e + 1, t) for t in range(2) for e in range(6)]
TRAIN += [(e, 0, e + 1, 2) for e in range(5)] + [(0, 1, 7, 2), (3, 1, 7, 2)]


@pytest.fixture
def timeline() -> Timeline:
    """At step 2 two facts begin and one ends; at step 3 nothing holds."""
    return make_timeline(TRAIN, num_entities=8, num_relations=2, num_steps=4)


def small_tie(**options: Any) -> TIE:
    return TIE(negatives=3, replay=ReplayOptions(size=5, negatives=2), **options)


def learner_for(
    timeline: Timeline,
    time: int = 2,
    strategy: Strategy | None = None,
    validate: Callable[[], float] = lambda: float("nan"),
    model: TKGModel | None = None,
    stride: int = 1,
    **settings: Any,
) -> StepLearner:
    return StepLearner(
        model_for(timeline) if model is None else model,
        timeline,
        time,
        FT(negatives=3) if strategy is None else strategy,
        LearningSettings(**{"lr": 0.05, **settings}),
        NegativeSampler(timeline, stride),
        torch.Generator().manual_seed(0),
        validate,
    )


def finish(learner: StepLearner) -> StepLearner:
    while not learner.is_finished:
        learner.run_epoch()
    learner.finish()
    return learner


class Script:
    """Returns the given validation values one after the other, and keeps the weights of each."""

    def __init__(self, values: Iterable[float]) -> None:
        self.values, self.weights = iter(values), list[dict[str, Tensor]]()
        self.model: TKGModel

    def __call__(self) -> float:
        self.weights.append(copy.deepcopy(self.model.state_dict()))
        return next(self.values)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("strategy", [FT(negatives=3), small_tie()], ids=str)
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
    assert not torch.equal(best["entity_vectors"], script.weights[3]["entity_vectors"])
    assert [record["val C@10"] for record in learner.history] == [10, 30, 20, 30]
    assert len(learner.seconds) == 4


def test_number_of_epochs(timeline: Timeline) -> None:
    values = iter(range(100))
    learner = learner_for(timeline, validate=lambda: float(next(values)), epochs=3, patience=1)
    assert finish(learner).epoch == 3


def test_validation_every_few_epochs(timeline: Timeline) -> None:
    script = Script([10.0, 30.0, 20.0, 5.0])
    script.model = model_for(timeline)
    learner = learner_for(timeline, validate=script, model=script.model, validate_every=2, epochs=7)
    finish(learner)
    validated = [i + 1 for i, record in enumerate(learner.history) if "val C@10" in record]
    assert validated == [2, 4, 6, 7]  # and after the last epoch
    assert learner.stopping.best_epoch == 4
    best = script.weights[1]
    assert all(torch.equal(best[name], value) for name, value in script.model.state_dict().items())


def test_without_validation_quads_the_loss_decides(timeline: Timeline) -> None:
    learner = finish(learner_for(timeline, strategy=FT(negatives="all"), epochs=30))
    losses = [record["CE"] for record in learner.history]
    assert losses[-1] < losses[0]
    assert learner.stopping.best == -min(losses)
    assert learner.stopping.best_epoch == losses.index(min(losses)) + 1


# Losses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_all_losses_are_logged(timeline: Timeline, optimizer: str, stride: int) -> None:
    learner = learner_for(timeline, strategy=small_tie(), optimizer=optimizer, stride=stride, n3=0.1, smoothness=0.1)
    record = learner.run_epoch()
    assert set(record) == {"CE", "del", "RCE", "RKD", "TR", "N3", "smoothness", "val C@10"}
    assert all(math.isfinite(value) for name, value in record.items() if name != "val C@10")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_the_logged_regularization_is_that_of_the_oracle(timeline: Timeline, name: str, optimizer: str) -> None:
    line = TimelineOracle(TRAIN, [], [], 8, 4)
    model = model_for(timeline, name)
    for table in model.axes:
        model.constrain_table(table)
    before = ScoreOracle(model).tables
    learner = learner_for(
        timeline, strategy=small_tie(regularization=0.3), optimizer=optimizer, model=model, batch_size=4
    )
    known = {"entity": line.known_entities(1), "relation": range(2), "time": range(2)}
    for _ in range(3):
        record = learner.run_epoch()
        now = ScoreOracle(model).tables
        wanted = sum(drift(now[t], before[t], known[axis], True) for t, axis in model.axes.items())
        assert record["TR"] == pytest.approx(0.3 * wanted, rel=1e-6)
        assert record["TR"] > 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_optimizer_adds_the_gradient_of_the_regularization(timeline: Timeline, optimizer: str) -> None:
    """By squares, the optimizer adds the gradient; a term that autograd differentiates gives the same weights."""

    by_autograd = TemporalRegularization(0.3)
    by_autograd.anchor_weight = 0.0
    link = CrossEntropy(negatives="all")
    found = []
    for term in (TemporalRegularization(0.3), by_autograd):
        # All known entities are candidates, so that every known row is touched in every batch.
        learner = learner_for(timeline, strategy=Strategy([link, term]), optimizer=optimizer, weight_decay=0.0)
        for _ in range(3):
            learner.run_epoch()
        found.append({name: table.detach() for name, table in learner.model.tables().items()})
    for name, table in found[0].items():
        torch.testing.assert_close(table, found[1][name], rtol=1e-6, atol=1e-9)


def test_two_terms_with_the_same_loss(timeline: Timeline) -> None:
    class Sly(Term):
        """Says nothing of its losses beforehand."""

        def losses(self, encoded: Any, context: TrainingContext) -> Losses:
            return {"CE": torch.zeros(())}

        def __repr__(self) -> str:
            return "Sly()"

    learner = learner_for(timeline, strategy=Strategy([CrossEntropy(negatives=2), Sly()]))
    with pytest.raises(ValueError, match=r"losses must have different names \(got 'CE' again from Sly\(\)\)"):
        learner.run_epoch()
    with pytest.raises(ValueError, match=r"losses must have different names"):
        learner_for(timeline, strategy=Strategy([CrossEntropy(name="N3")]), n3=0.1)


def test_steps_without_quads(timeline: Timeline) -> None:
    for strategy in (FT(), TR(), Strategy([])):
        learner = learner_for(timeline, time=3, strategy=strategy)
        before = copy.deepcopy(learner.model.state_dict())
        assert learner.is_finished
        finish(learner)
        assert (learner.epoch, learner.loader.num_quads, learner.loader.num_examples) == (0, 0, 0)
        assert all(torch.equal(before[name], value) for name, value in learner.model.state_dict().items())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("short_last", [False, True])
def test_a_view_without_quads(timeline: Timeline, optimizer: str, short_last: bool) -> None:
    """At step 3 nothing is added, but facts were deleted and can be replayed."""
    learner = learner_for(timeline, time=3, strategy=small_tie(), optimizer=optimizer, short_last=short_last)
    assert not learner.is_finished
    assert set(learner.run_epoch()) == {"del", "RCE", "RKD", "TR", "val C@10"}


@pytest.mark.parametrize("short_last", [False, True])
def test_batches_smaller_than_the_number_of_terms(timeline: Timeline, short_last: bool) -> None:
    strategy = Strategy([CrossEntropy(negatives=2), DeletedFacts(), Replay(negatives=2)])
    record = learner_for(timeline, strategy=strategy, batch_size=1, short_last=short_last).run_epoch()
    assert set(record) == {"CE", "del", "RCE", "RKD", "val C@10"}


def test_logged_losses_are_means_over_the_batches_that_have_them(timeline: Timeline) -> None:
    learner = learner_for(timeline, strategy=small_tie(regularization=0), batch_size=2, lr=1e-30)
    seen: dict[str, list[float]] = {}
    losses_of = learner.losses

    def kept(batch: Any) -> Losses:
        losses = losses_of(batch)
        for name, loss in losses.items():
            seen.setdefault(name, []).append(loss.item())
        return losses

    learner.losses = kept  # type: ignore[method-assign]
    record = learner.run_epoch()
    assert len(seen["del"]) == 1 < len(seen["RCE"])
    for name, values in seen.items():
        assert record[name] == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("strategy", "term"),
    [(FT(negatives=3), "CE"), (Strategy([DeletedFacts()]), "del"), (Strategy([Replay()]), "RCE")],
)
def test_a_loss_that_is_not_a_number(timeline: Timeline, optimizer: str, strategy: Strategy, term: str) -> None:
    model = model_for(timeline)
    model.tables()["relation_vectors"].data.fill_(float("nan"))
    learner = learner_for(timeline, strategy=strategy, model=model, optimizer=optimizer)
    with pytest.raises(FloatingPointError, match=rf"the loss {term} became nan in epoch 1 of step 2 \(2\)"):
        learner.run_epoch()


def test_an_infinite_loss(timeline: Timeline) -> None:
    learner = learner_for(timeline, strategy=Strategy([DeletedFacts()]), model=model_for(timeline, "DE distmult"))
    for table in learner.model.parameters():
        table.data.fill_(1e200)
    with pytest.raises(FloatingPointError, match=r"the loss del became (inf|nan)"):
        learner.run_epoch()


# Runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_same_bits_twice(timeline: Timeline, optimizer: str) -> None:
    strategy = TIE(negatives=3, replay=ReplayOptions("frequency", size=5))
    first, second = (finish(learner_for(timeline, strategy=strategy, optimizer=optimizer, epochs=4)) for _ in range(2))
    assert repr(first.history) == repr(second.history)  # NaN is not equal to itself
    weights = second.model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in first.model.state_dict().items())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state(timeline: Timeline, optimizer: str) -> None:
    """A learner in the state of another one goes on to the same bits."""
    values = [3.0, 5.0, 4.0, 2.0, 1.0]
    script = Script(values)
    script.model = model_for(timeline)
    first = learner_for(timeline, strategy=small_tie(), optimizer=optimizer, model=script.model, validate=script)
    for _ in range(3):
        first.run_epoch()
    state, weights = copy.deepcopy(first.state_dict()), copy.deepcopy(script.model.state_dict())
    generator = first.loader.generator.get_state()
    other = Script(values[3:])
    other.model = model_for(timeline, seed=9)
    other.model.load_state_dict(weights)
    second = learner_for(timeline, strategy=small_tie(), optimizer=optimizer, model=other.model, validate=other)
    second.load_state_dict(state)
    second.loader.generator.set_state(generator)
    for learner in (first, second):
        learner.run_epoch()
        learner.run_epoch()
        learner.finish()
    assert repr(first.history) == repr(second.history)
    assert second.stopping == first.stopping
    assert all(torch.equal(value, other.model.state_dict()[key]) for key, value in script.model.state_dict().items())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["HyTE"])
def test_normals_keep_their_length(timeline: Timeline, optimizer: str, name: str) -> None:
    """Also those of steps without facts, which weight decay would move towards zero."""
    model = model_for(timeline, name)
    model.constrain_table("normals")
    finish(learner_for(timeline, model=model, optimizer=optimizer, weight_decay=1.0, epochs=10, lr=0.1))
    assert torch.allclose(model.tables()["normals"].norm(dim=1), torch.ones(4, dtype=torch.double))


def test_new_rows_have_no_anchor() -> None:
    """Temporal regularization is about rows known at the step before: entity 2 and step 1 are new at step 1."""
    train = [(0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 2, 1)]
    timeline = make_timeline(train, num_entities=3, num_relations=1, num_steps=2)
    moved = {}
    for name in ("DE complex", "HyTE"):
        for optimizer in OPTIMIZERS:
            for strategy in (FT(negatives="all"), TR(negatives="all", regularization=1e4)):
                model = model_for(timeline, name)
                before = copy.deepcopy(model.state_dict())
                # Without clipping: anchored rows take their share of the norm of a gradient.
                learner = learner_for(
                    timeline, 1, strategy, model=model, epochs=5, patience=5, max_norm=None, optimizer=optimizer
                )
                finish(learner)
                tables = {"entity_vectors": 2} | ({"normals": 1} if name == "HyTE" else {})
                moved[strategy.name] = {
                    table: (model.state_dict()[table] - before[table]).abs().max(1).values.tolist() for table in tables
                }
                for table, new in tables.items():
                    assert moved[strategy.name][table][new] > 0.02, (name, strategy.name, table)
            assert max(moved["TR"]["entity_vectors"][:2]) < max(moved["FT"]["entity_vectors"][:2])


# A user's modules --------------------------------------------------------------------------------------


class Noisy(nn.Module):
    """A decoder that a user has put dropout in front of."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.inner, self.dropout, self.modes = decoder, nn.Dropout(0.5), list[bool]()
        self.similarity = decoder.similarity

    def query(self, given: Tensor, rel: Tensor, side: Any) -> Tensor:
        self.modes.append(self.dropout.training)
        return self.inner.query(self.dropout(given), rel, side)

    def forward(self, head: Tensor, rel: Tensor, tail: Tensor) -> Tensor:
        return self.inner(self.dropout(head), rel, tail)


def test_dropout_is_active_in_training(timeline: Timeline) -> None:
    model = model_for(timeline)
    model.decoder = Noisy(model.decoder)
    model.eval()
    learner_for(timeline, model=model).run_epoch()
    assert model.decoder.modes == [True] * len(model.decoder.modes)
    assert model.decoder.modes
