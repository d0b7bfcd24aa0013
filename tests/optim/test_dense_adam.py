import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from updates import (
    Loss,
    Tables,
    assert_same,
    assert_same_bits,
    copy_of,
    everything,
    make_tables,
    reference,
    some_rows,
    update,
)

from tkg_incremental.ops import native
from tkg_incremental.optim import DenseAdam


@pytest.fixture
def tables() -> Tables:
    return make_tables()


def adam(weight_decay: float = 1e-4, lr: float = 0.05) -> Callable[[Any], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay)


@pytest.mark.parametrize("max_norm", [0.1, math.inf])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.parametrize("loss", [everything, some_rows(1, 4)], ids=["all rows", "some rows"])
def test_it_is_adam_with_clipping(tables: Tables, weight_decay: float, max_norm: float, loss: Loss) -> None:
    wanted = reference(tables, adam(weight_decay), None if math.isinf(max_norm) else max_norm, *[loss] * 5)
    update(tables, DenseAdam(tables, 0.05, weight_decay, max_norm), *[loss] * 5)
    assert_same(tables, wanted)
    assert not torch.equal(tables["entity"], make_tables()["entity"])


def test_rows_that_no_batch_touches_decay(tables: Tables) -> None:
    before = copy_of(tables)
    update(tables, DenseAdam(tables, 0.05), *[some_rows(1, 4)] * 5)
    untouched = before["entity"][[0, 2, 3, 5, 6]]
    # Towards zero, by about the learning rate per update, however small the gradient of the penalty is.
    moved = untouched.abs() - tables["entity"][[0, 2, 3, 5, 6]].abs()
    assert (moved[untouched.abs() > 0.5] > 0.9 * 5 * 0.05).all()


def test_weight_decay_reaches_tables_that_no_loss_uses(tables: Tables) -> None:
    before = copy_of(tables)
    update(tables, DenseAdam(tables, 0.05), lambda some: some["entity"].sum())
    assert (tables["relation"] != before["relation"]).all()


def test_anchors_are_the_gradient_of_the_squared_change(tables: Tables) -> None:
    before, index = copy_of(tables), {"entity": torch.tensor([0, 1, 2, 5]), "relation": torch.arange(4)}

    def squares(some: Tables) -> Tensor:
        return torch.stack(
            [(some[name][rows] - before[name][rows]).square().sum() for name, rows in index.items()]
        ).sum()

    wanted = reference(tables, adam(), 1.0, *[lambda some: everything(some) + 0.7 * squares(some)] * 5)
    anchors = {name: (rows, before[name].detach()) for name, rows in index.items()}
    optimizer = DenseAdam(tables, 0.05, 1e-4, 1.0, anchor_weight=0.7, anchors=anchors)
    assert optimizer.anchor_loss().item() == 0
    update(tables, optimizer, *[everything] * 5)
    assert_same(tables, wanted)
    assert optimizer.anchor_loss().item() == pytest.approx(0.7 * squares(tables).item())


def test_touched(tables: Tables) -> None:
    optimizer = DenseAdam(tables)
    assert optimizer.touched == {"entity": None, "relation": None}  # all rows
    assert isinstance(optimizer, torch.optim.Optimizer)


def test_a_sequence_of_tables(tables: Tables) -> None:
    twin = copy_of(tables)
    update(tables, DenseAdam(tables, 0.05), everything)
    update(twin, DenseAdam(list(twin.values()), 0.05), everything)
    assert_same_bits(twin, tables)


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_state(dtype: torch.dtype) -> None:
    tables = make_tables(dtype)
    optimizer = DenseAdam(tables, 0.05)
    update(tables, optimizer, everything, some_rows(1))
    twin = copy_of(tables)
    other = DenseAdam(twin, 0.01)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.param_groups[0]["lr"] == 0.05
    for loss in (some_rows(2), everything):
        update(tables, optimizer, loss)
        update(twin, other, loss)
        assert_same_bits(twin, tables)


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_a_scheduler(dtype: torch.dtype) -> None:
    tables = make_tables(dtype)
    before = copy_of(tables)
    optimizer = DenseAdam(tables, 0.05, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.0 if epoch == 1 else 1.0)
    update(tables, optimizer, everything)
    scheduler.step()
    moved = copy_of(tables)
    assert not torch.equal(moved["entity"], before["entity"])
    update(tables, optimizer, everything)
    assert_same_bits(tables, moved)
    scheduler.step()
    update(tables, optimizer, everything)
    assert not torch.equal(moved["entity"], tables["entity"])


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_a_gradient_scaler(dtype: torch.dtype) -> None:
    """Scaled gradients are unscaled before they are clipped, and updates with infinite gradients are skipped."""
    tables = make_tables(dtype)
    twin = copy_of(tables)
    optimizer, plain = DenseAdam(tables, 0.05, max_norm=0.1), DenseAdam(twin, 0.05, max_norm=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(everything(tables)).backward()
        scaler.step(optimizer)
        scaler.update()
        update(twin, plain, everything)
    assert_same_bits(tables, twin)
    before = copy_of(tables)
    optimizer.zero_grad()
    scaler.scale(everything(tables) * math.inf).backward()
    scaler.step(optimizer)
    scaler.update()
    assert_same_bits(tables, before)
    assert scaler.get_scale() == 512.0


def test_a_closure(tables: Tables) -> None:
    optimizer = DenseAdam(tables, 0.05)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = everything(tables)
        loss.backward()
        return loss

    wanted = everything(tables).item()
    assert optimizer.step(closure).item() == wanted
    assert everything(tables).item() < wanted


@pytest.mark.skipif(not native.is_available(), reason="the kernels were not compiled")
@pytest.mark.parametrize("max_norm", [0.1, math.inf])
def test_kernel_and_torch(max_norm: float) -> None:
    tables, twin = make_tables(torch.float), make_tables(torch.float)
    update(tables, DenseAdam(tables, 0.05, max_norm=max_norm), *[everything, some_rows(2)] * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_KERNELS", None)
        update(twin, DenseAdam(twin, 0.05, max_norm=max_norm), *[everything, some_rows(2)] * 3)
    for name, table in tables.items():
        torch.testing.assert_close(table, twin[name], rtol=1e-5, atol=1e-6)
