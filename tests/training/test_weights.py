"""The weights before a step and those of its best epoch, as copies or as touched rows."""

import copy

import pytest
import torch
from learning import MODELS, small_model

from tkg_incremental.models import TKGModel
from tkg_incremental.optim import DenseAdam, RowAdam, TouchedRows
from tkg_incremental.training.weights import WholeWeights

QUADS = torch.tensor([(0, 0, 1, 1), (3, 1, 3, 2), (1, 0, 3, 2)])
ALL = torch.cartesian_prod(torch.arange(5), torch.arange(3), torch.arange(5), torch.arange(4))


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> TKGModel:
    return small_model(request.param, 5, 3, 4)


class Setup:
    def __init__(self, model: TKGModel, kind: str) -> None:
        self.model = model
        self.weights: WholeWeights | TouchedRows
        if kind == "whole":
            self.weights = WholeWeights(model)
            self.previous = self.weights.previous
            self.optimizer: torch.optim.Optimizer = DenseAdam(model.tables(), 0.05)
        else:
            self.weights = TouchedRows(model.tables())
            self.previous = model.frozen_view(model.former_rows(self.weights))
            self.optimizer = RowAdam(model.tables(), 0.05, rows=self.weights)

    def learn(self, quads: torch.Tensor, updates: int = 2) -> None:
        for _ in range(updates):
            self.optimizer.zero_grad()
            self.model(quads).square().sum().backward()
            self.optimizer.step()


KINDS = pytest.mark.parametrize("kind", ["whole", "rows"])


@KINDS
def test_the_model_before_the_step(model: TKGModel, kind: str) -> None:
    setup, before = Setup(model, kind), model(ALL).detach()
    assert setup.previous.is_frozen
    for _ in range(2):
        setup.learn(QUADS)
        assert torch.equal(setup.previous(ALL), before)
        assert not torch.equal(model(ALL), before)


@KINDS
def test_save_and_restore(model: TKGModel, kind: str) -> None:
    setup = Setup(model, kind)
    setup.learn(QUADS[:1])
    setup.weights.save()
    saved = copy.deepcopy(model.state_dict())
    setup.learn(QUADS)  # touches rows that were not touched before the save
    assert any(not torch.equal(saved[name], value) for name, value in model.state_dict().items())
    setup.weights.restore()
    assert all(torch.equal(saved[name], value) for name, value in model.state_dict().items())


@KINDS
def test_restore_without_save(model: TKGModel, kind: str) -> None:
    setup = Setup(model, kind)
    setup.learn(QUADS)
    now = copy.deepcopy(model.state_dict())
    setup.weights.restore()
    assert all(torch.equal(now[name], value) for name, value in model.state_dict().items())


@KINDS
def test_state(model: TKGModel, kind: str) -> None:
    setup, before = Setup(model, kind), model(ALL).detach()
    setup.learn(QUADS[:1])
    setup.weights.save()
    saved = copy.deepcopy(model.state_dict())
    setup.learn(QUADS)
    twin = copy.deepcopy(model)
    other = Setup(twin, kind)
    other.weights.load_state_dict(copy.deepcopy(setup.weights.state_dict()))
    assert torch.equal(other.previous(ALL), before)
    other.weights.restore()
    assert all(torch.equal(saved[name], value) for name, value in twin.state_dict().items())
