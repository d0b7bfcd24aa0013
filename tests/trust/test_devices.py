"""All parts of a run on a device other than the CPU; see :mod:`far_device`."""

from __future__ import annotations

from typing import Any

import far_device
import pytest
import torch
from far_device import DEVICE, DeviceMixError, FarTensor, far_away
from timelines import make_timeline
from torch import Tensor

from tkg_incremental import LearningSettings
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.loader import NegativeSampler, sample_replay
from tkg_incremental.loader.replay import SAMPLINGS
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import DE, HyTE, TKGModel
from tkg_incremental.strategies import (
    AGEM,
    FB,
    TIE,
    CrossEntropy,
    History,
    ReplayOptions,
    Strategy,
    Supersede,
    TemporalRegularization,
)
from tkg_incremental.training import StepLearner, warm_up

pytestmark = pytest.mark.skipif(not far_device.AVAILABLE, reason="this version of torch has no backends in Python")

MODELS = ("DE complex", "DE transe", "HyTE")
STRATEGIES: dict[str, Any] = {
    "TIE": lambda: TIE(negatives=8, replay=ReplayOptions(size=40, negatives=4)),
    "TIE shared": lambda: TIE(negatives=8, shared=True, replay=ReplayOptions("frequency", size=40, negatives=4)),
    "A-GEM": lambda: AGEM(replay=ReplayOptions(size=40), window=3),
    "FB all": lambda: FB(window=2, negatives="all"),
    "norm": lambda: Strategy([CrossEntropy(negatives=8), TemporalRegularization(reduction="norm")]),
    "Supersede": lambda: Supersede(replay=ReplayOptions(size=40), window=3, unlikelihood=2.0),
    "visits": lambda: Strategy([CrossEntropy(History(visits=2), negatives=8)]),
}


@pytest.fixture(scope="module")
def line() -> Timeline:
    return SyntheticTKG(num_entities=40, num_relations=3, num_steps=6, facts_per_step=120, seed=1).timeline


def make_model(name: str, line: Timeline) -> TKGModel:
    sizes = (line.num_entities, line.num_relations, line.num_steps, 8)
    return HyTE(*sizes) if name == "HyTE" else DE(*sizes, decoder=name.split()[1])


def learn(
    line: Timeline,
    model: TKGModel,
    strategy: Strategy,
    optimizer: str,
    epochs: int = 2,
    batch_size: int = 64,
    stride: int = 1,
    **options: Any,
) -> StepLearner:
    """Learns a step with a generator of the CPU on either device, for the same random numbers."""
    settings = LearningSettings(epochs=epochs, batch_size=batch_size, optimizer=optimizer, lr=0.01, **options)
    evaluator = Evaluator(line, "val")
    generator = torch.Generator().manual_seed(0)
    sampler = NegativeSampler(line, stride)
    learner = StepLearner(model, line, 4, strategy, settings, sampler, generator, lambda: evaluator.current(model, 4))
    while not learner.is_finished:
        learner.run_epoch()
    learner.finish()
    return learner


def near(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu()


@pytest.mark.parametrize("name", MODELS)
def test_warm_up(name: str) -> None:
    train = [(e, 0, 10 + e % 2, t) for e in range(10) for t in range(3)] + [(12, 0, 10, 2), (13, 0, 11, 2)]
    line = make_timeline(train, num_entities=14, num_relations=1, num_steps=3)

    def trained(line: Timeline, model: TKGModel) -> Tensor:
        warm_up(model, line, 2, NegativeSampler(line), torch.Generator().manual_seed(0), epochs=2)
        return near(model.tables()["entity_vectors"])

    here = trained(line, make_model(name, line))
    with far_away():
        there = trained(line.to(DEVICE), make_model(name, line).to(DEVICE))
    torch.testing.assert_close(here, there)


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
@pytest.mark.parametrize(
    ("name", "strategy"), [*(("DE complex", name) for name in STRATEGIES), ("DE transe", "TIE"), ("HyTE", "FB all")]
)
def test_a_step_of_learning(line: Timeline, name: str, strategy: str, optimizer: str) -> None:
    here, there = make_model(name, line), make_model(name, line)
    mine = learn(line, here, STRATEGIES[strategy](), optimizer)
    with far_away():
        learner = learn(line.to(DEVICE), there.to(DEVICE), STRATEGIES[strategy](), optimizer)
        assert all(isinstance(weight.data, FarTensor) for weight in there.parameters())
        weights = [near(weight) for weight in there.parameters()]
        state = learner.state_dict()
    # Other kernels are used there, so that the last bits may differ.
    for weight, other in zip(here.parameters(), weights, strict=True):
        assert torch.allclose(weight, other, atol=1e-4)
    for record, theirs in zip(mine.history, learner.history, strict=True):
        assert record == pytest.approx(theirs, rel=1e-3, abs=1e-4)
    assert state["epoch"] == 2


@pytest.mark.parametrize("options", [{"n3": 0.1, "smoothness": 0.1}, {"stride": 3}, {"optimizer": "adagrad"}], ids=str)
@pytest.mark.parametrize("name", ["DE complex", "HyTE"])
def test_other_settings(line: Timeline, name: str, options: dict[str, Any]) -> None:
    options = {"optimizer": "rowwise", **options}
    mine = learn(line, make_model(name, line), STRATEGIES["TIE"](), **options)
    with far_away():
        theirs = learn(line.to(DEVICE), make_model(name, line).to(DEVICE), STRATEGIES["TIE"](), **options)
    for record, other in zip(mine.history, theirs.history, strict=True):
        assert record == pytest.approx(other, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_a_restored_learner(line: Timeline, optimizer: str) -> None:
    with far_away():
        far, model = line.to(DEVICE), make_model("DE complex", line).to(DEVICE)
        first = learn(far, model, STRATEGIES["TIE"](), optimizer)
        again = learn(far, model, STRATEGIES["TIE"](), optimizer, epochs=1)
        again.load_state_dict(first.state_dict())
        again.run_epoch()
        again.finish()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("per_query", [True, False])
def test_ranks_and_metrics(line: Timeline, name: str, per_query: bool) -> None:
    model = make_model(name, line)
    metrics, alpha = Evaluator(line, per_query=per_query).evaluate(model, 5)
    with far_away():
        found, row = Evaluator(line.to(DEVICE), per_query=per_query).evaluate(model.to(DEVICE), 5)
    assert found == pytest.approx(metrics, nan_ok=True)
    assert row == pytest.approx(alpha)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_sampling(line: Timeline, sampling: Any) -> None:
    quads = sample_replay(line, 4, 3, 30, sampling, torch.Generator().manual_seed(0))
    quads = quads[torch.argsort(quads[:, 3], stable=True)]
    generator = torch.Generator().manual_seed(0)
    drawn = [NegativeSampler(line).draw(quads, 7, generator, shared) for shared in (False, True)]
    with far_away():
        far = line.to(DEVICE)
        theirs = sample_replay(far, 4, 3, 30, sampling, torch.Generator().manual_seed(0))
        theirs = theirs[torch.argsort(theirs[:, 3], stable=True)]
        assert torch.equal(near(theirs), quads)
        generator = torch.Generator().manual_seed(0)
        for shared, ours in zip((False, True), drawn, strict=True):
            found = NegativeSampler(far).draw(theirs, 7, generator, shared)
            assert torch.equal(near(found.entities), ours.entities)
            assert found.mask is None or torch.equal(near(found.mask), ours.mask)


def test_queries(line: Timeline) -> None:
    dataset = SyntheticTKG(num_entities=40, num_relations=3, num_steps=6, facts_per_step=120, seed=1)
    model = DE.from_dataset(dataset, hidden_channels=8)
    query = {"head": 0, "rel": 0, "time": dataset.timeline.axis.first[3]}
    answers = model.query(**query)
    with far_away():
        found = model.to(DEVICE).query(**query)
    assert [answer.name for answer in found] == [answer.name for answer in answers]


# What the host waits for -------------------------------------------------------------------------------


#: Maximum number per batch. All are sizes that depend on values: distinct rows of a batch, answers of its queries.
#: The values of the losses are read once per epoch.
LIMITS = {
    ("TIE", "rowwise"): 35,
    ("TIE", "published"): 26,
    ("FB all", "rowwise"): 26,
    ("FB all", "published"): 18,
}


@pytest.mark.parametrize("batch_size", [32, 128])
@pytest.mark.parametrize(("strategy", "optimizer"), LIMITS)
def test_the_host_seldom_waits(line: Timeline, strategy: str, optimizer: str, batch_size: int) -> None:
    with far_away() as mode:
        far, model = line.to(DEVICE), make_model("DE complex", line).to(DEVICE)
        learner = learn(far, model, STRATEGIES[strategy](), optimizer, epochs=1, batch_size=batch_size)
        mode.waits.clear()
        learner._train()
    per_epoch = 8  # the losses, and the order of the batches
    assert sum(mode.waits.values()) <= len(learner.loader) * LIMITS[strategy, optimizer] + per_epoch, mode.waits


def test_the_device_itself() -> None:
    """Mixed devices are refused and waits are counted."""
    with far_away() as mode:
        x = torch.arange(6, device=DEVICE).view(2, 3)
        assert x.device.type == DEVICE
        with pytest.raises(DeviceMixError, match="add"):
            x + torch.ones(2, 3)
        with pytest.raises(DeviceMixError, match="index"):
            x[torch.tensor([0, 1])]
        with pytest.raises(DeviceMixError, match="mm"):
            x.float() @ torch.ones(3, 2)
        assert mode.waits == {}
        assert (x + 1).sum().item() == 21
        assert x[x > 2].tolist() == [3, 4, 5]
        assert mode.waits == {"_local_scalar_dense": 1, "index by mask": 1, "_to_copy": 1}
        assert x.cpu().device.type == "cpu"
    with pytest.raises(DeviceMixError, match="outside"):
        x + 1
