import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from learning import MODELS, small_model
from torch import Tensor, nn

from tkg_incremental.models import HyTE, TKGModel
from tkg_incremental.training import PublishedAdam, RowAdam

ROWS = torch.tensor([(0, 0, 1, 1), (3, 1, 3, 2), (1, 0, 3, 2)])
TOUCHED = {"entity": [0, 1, 3], "relation": [0, 1], "time": [1, 2]}


@pytest.fixture(params=["DE complex", "HyTE"])
def model(request: pytest.FixtureRequest) -> TKGModel:
    return small_model(request.param, 5, 3, 4)


def everything(model: TKGModel) -> Tensor:
    """A loss that touches every row of every table, with curvature."""
    return sum((table.pow(4) + 0.3 * table).sum() for table in model.parameters())  # type: ignore[return-value]


def run(model: TKGModel, optimizer: object, loss: Callable[[TKGModel], Tensor], updates: int = 5) -> None:
    for _ in range(updates):
        optimizer.zero_grad()  # type: ignore[attr-defined]
        loss(model).backward()
        optimizer.step()  # type: ignore[attr-defined]


def reference(
    model: TKGModel, loss: Callable[[TKGModel], Tensor], weight_decay: float, max_norm: float, updates: int = 5
) -> TKGModel:
    """Torch's own Adam, with clipping, on a copy."""
    twin = copy.deepcopy(model)
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.05, weight_decay=weight_decay)
    for _ in range(updates):
        optimizer.zero_grad()
        loss(twin).backward()
        for parameter in twin.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        nn.utils.clip_grad_norm_(twin.parameters(), max_norm)
        optimizer.step()
        if "normals" in twin.encoder.axes:
            with torch.no_grad():
                twin.encoder.normals /= twin.encoder.normals.norm(dim=1, keepdim=True)
    return twin


def same(first: TKGModel, second: TKGModel) -> bool:
    return all(torch.allclose(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("max_norm", [0.1, 1e9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_both_are_adam_where_every_row_is_touched(model: TKGModel, weight_decay: float, max_norm: float) -> None:
    wanted = reference(model, everything, weight_decay, max_norm)
    for kind in (RowAdam, PublishedAdam):
        twin = copy.deepcopy(model)
        run(twin, kind(twin, 0.05, weight_decay, max_norm), everything)
        assert same(twin, wanted)
        assert not same(twin, model)


def test_the_published_one_is_adam_where_rows_are_not_touched(model: TKGModel) -> None:
    def loss(model: TKGModel) -> Tensor:
        return model(ROWS).square().sum()

    twin = copy.deepcopy(model)
    run(twin, PublishedAdam(twin, 0.05, 1e-4, 1.0), loss)
    assert same(twin, reference(model, loss, 1e-4, 1.0))
    untouched_before, untouched = (m.encoder.tables()["entity_vectors"][[2, 4]] for m in (model, twin))
    # Towards zero, by about the learning rate per update: Adam does not care how small a gradient is.
    moved = untouched_before.abs() - untouched.abs()
    assert (moved[untouched_before.abs() > 0.5] > 0.9 * 5 * 0.05).all()


def test_weight_decay_reaches_tables_that_no_loss_uses(model: TKGModel) -> None:
    before = model.encoder.tables()["relation_vectors"].clone()
    run(model, PublishedAdam(model, 0.05), lambda m: m.encoder.tables()["entity_vectors"].sum())
    assert (model.encoder.tables()["relation_vectors"] != before).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_only_touched_rows_move(name: str, weight_decay: float) -> None:
    model = small_model(name, 5, 3, 4)
    before = {name: table.clone() for name, table in model.encoder.tables().items()}
    run(model, RowAdam(model, 0.05, weight_decay, pull=0.1), lambda m: m(ROWS).square().sum())
    for table, values in model.encoder.tables().items():
        moved = (values != before[table]).any(1).nonzero().flatten().tolist()
        assert moved == TOUCHED[model.encoder.axes[table]]


def test_a_row_counts_its_own_updates(model: TKGModel) -> None:
    """A row that is first touched in the third update moves as in a first update."""
    optimizer = RowAdam(model, 0.05, max_norm=1e9)
    run(model, optimizer, lambda m: m(ROWS[:1]).square(), updates=2)
    before = model.encoder.tables()["entity_vectors"][3].clone()
    run(model, optimizer, lambda m: m(ROWS[1:2]).square(), updates=1)
    step = (model.encoder.tables()["entity_vectors"][3] - before).abs()
    assert torch.allclose(step[step > 0], torch.tensor(0.05, dtype=torch.double), rtol=1e-4)


def test_a_row_that_pauses_keeps_its_state(model: TKGModel) -> None:
    """What happens to other rows in between is nothing to a row."""

    def alone(m: TKGModel) -> Tensor:
        return m.encoder.rows("entity_vectors", torch.tensor([0])).pow(4).sum()

    def other(m: TKGModel) -> Tensor:
        return m.encoder.rows("entity_vectors", torch.tensor([4])).pow(4).sum()

    twin = copy.deepcopy(model)
    optimizer, undisturbed = RowAdam(model, 0.05, max_norm=1e9), RowAdam(twin, 0.05, max_norm=1e9)
    for loss in (alone, other, alone, other, alone):
        run(model, optimizer, loss, updates=1)
    run(twin, undisturbed, alone, updates=3)
    assert torch.equal(model.encoder.tables()["entity_vectors"][0], twin.encoder.tables()["entity_vectors"][0])


@pytest.mark.parametrize("kind", [RowAdam, PublishedAdam])
def test_some_rows_are_not_pulled(model: TKGModel, kind: type[RowAdam | PublishedAdam]) -> None:
    """Rows that the caller leaves out move as if there were no pull, the others as if all were pulled."""

    def loss(m: TKGModel) -> Tensor:
        return m(ROWS).square().sum()

    def after(**options: Any) -> Tensor:
        twin = copy.deepcopy(model)
        run(twin, kind(twin, 0.05, 0.0, max_norm=1e9, **options), loss)
        return twin.encoder.tables()["entity_vectors"].detach()

    free, pulled = after(), after(pull=5.0)
    mixed = after(pull=5.0, pulled=lambda axis, index: (index != 0) | (axis != "entity"))
    run_apart = after(pull=5.0, pulled=lambda axis, index: torch.zeros_like(index, dtype=torch.bool))
    assert torch.equal(run_apart, free)
    assert not torch.allclose(mixed[0], pulled[0])
    assert not torch.allclose(mixed[1], free[1])


@pytest.mark.parametrize("kind", [RowAdam, PublishedAdam])
def test_pull_is_the_gradient_of_the_squared_change(model: TKGModel, kind: type[RowAdam | PublishedAdam]) -> None:
    start = copy.deepcopy(model)

    def with_drift(m: TKGModel) -> Tensor:
        pairs = zip(m.parameters(), start.parameters(), strict=True)
        return everything(m) + 0.7 * sum((now - before.detach()).square().sum() for now, before in pairs)

    wanted = reference(model, with_drift, 0.0, 1.0)
    run(model, kind(model, 0.05, 0.0, max_norm=1.0, pull=1.4), everything)
    assert same(model, wanted)


# What they remember ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RowAdam, PublishedAdam])
def test_the_model_before_the_step(model: TKGModel, kind: type[RowAdam | PublishedAdam]) -> None:
    optimizer = kind(model, 0.05)
    rows = torch.cartesian_prod(torch.arange(5), torch.arange(3), torch.arange(5), torch.arange(4))
    before = model(rows).detach()
    for _ in range(2):
        run(model, optimizer, lambda m: m(ROWS).square().sum(), updates=2)
        assert torch.equal(optimizer.memory.previous(rows), before)
        assert not torch.equal(model(rows), before)


@pytest.mark.parametrize("kind", [RowAdam, PublishedAdam])
def test_back_to_the_mark(model: TKGModel, kind: type[RowAdam | PublishedAdam]) -> None:
    optimizer = kind(model, 0.05)
    run(model, optimizer, lambda m: m(ROWS[:1]).square().sum())
    optimizer.memory.mark()
    marked = copy.deepcopy(model.state_dict())
    run(model, optimizer, lambda m: m(ROWS).square().sum())  # touches rows that were not touched before the mark
    assert any(not torch.equal(marked[name], value) for name, value in model.state_dict().items())
    optimizer.memory.rewind()
    assert all(torch.equal(marked[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("kind", [RowAdam, PublishedAdam])
def test_no_mark_to_go_back_to(model: TKGModel, kind: type[RowAdam | PublishedAdam]) -> None:
    optimizer = kind(model, 0.05)
    run(model, optimizer, lambda m: m(ROWS).square().sum())
    now = copy.deepcopy(model.state_dict())
    optimizer.memory.rewind()
    assert all(torch.equal(now[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("kind", [RowAdam, PublishedAdam])
def test_normals_keep_their_length(kind: type[RowAdam | PublishedAdam]) -> None:
    """Also those of steps that nothing is learnt of, which weight decay alone would take to zero."""
    model = HyTE(5, 3, 4, 4).double()
    run(model, kind(model, lr=0.1, weight_decay=1.0), lambda model: model(ROWS).sum(), updates=30)
    assert torch.allclose(model.encoder.normals.norm(dim=1), torch.ones(4, dtype=torch.double))


def test_name(model: TKGModel) -> None:
    assert str(RowAdam(model, pull=2.0)) == "RowAdam(lr=0.001, weight_decay=0.0, pull=2.0)"


def test_an_update_without_gradients_changes_nothing(model: TKGModel) -> None:
    before = copy.deepcopy(model.state_dict())
    RowAdam(model, 0.05).step()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
