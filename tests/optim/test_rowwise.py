import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from learning import MODELS, small_model
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
from tkg_incremental.optim import RowAdagrad, RowAdam, RowOptimizer, TouchedRows
from tkg_incremental.optim.rowwise import gradient_norm

KINDS = [RowAdam, RowAdagrad]
Kind = type[RowAdam | RowAdagrad]
TORCH: dict[Kind, Callable[..., torch.optim.Optimizer]] = {
    RowAdam: lambda tables, **options: torch.optim.Adam(tables, lr=0.05, **options),
    RowAdagrad: lambda tables, **options: torch.optim.Adagrad(tables, lr=0.05, **options),
}


@pytest.fixture
def tables() -> Tables:
    return make_tables()


# Against torch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_norm", [0.1, None])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_where_every_row_is_touched(tables: Tables, kind: Kind, weight_decay: float, max_norm: float | None) -> None:
    def make(parameters: Any) -> torch.optim.Optimizer:
        return TORCH[kind](parameters, weight_decay=weight_decay)

    wanted = reference(tables, make, max_norm, *[everything] * 5)
    update(tables, kind(tables, 0.05, weight_decay=weight_decay, max_norm=max_norm), *[everything] * 5)
    assert_same(tables, wanted, rtol=1e-9)


@pytest.mark.parametrize("max_norm", [0.1, None])
def test_adagrad_is_dense_adagrad(tables: Tables, max_norm: float | None) -> None:
    """Without weight decay a row without a gradient does not move in Adagrad."""
    losses = [some_rows(1, 4), some_rows(0), everything, some_rows(4)]
    wanted = reference(tables, TORCH[RowAdagrad], max_norm, *losses)
    update(tables, RowAdagrad(tables, 0.05, max_norm=max_norm), *losses)
    assert_same(tables, wanted, rtol=1e-9)


def test_rows_of_adagrad_have_sums_of_their_own(tables: Tables) -> None:
    losses = [some_rows(1, 4), some_rows(0), everything, some_rows(4)]
    before = copy_of(tables)
    sums = {0: 0.3, 1: 2.0, 4: torch.inf}

    def initial_sums(name: str, rows: Tensor) -> Tensor:
        return torch.tensor([[sums.get(row, 0.0)] for row in rows.tolist()])

    optimizer = RowAdagrad(tables, 0.05, max_norm=None, initial_sums=initial_sums)
    update(tables, optimizer, *losses)
    assert all(4 not in rows for rows in optimizer.rows.moved().values())
    for row, value in sums.items():
        make = partial(torch.optim.Adagrad, lr=0.05, initial_accumulator_value=0.0 if value == torch.inf else value)
        wanted = reference(before, make, None, *losses)
        for name, table in tables.items():
            expected = before[name] if value == torch.inf else wanted[name]
            rows = slice(row, row + 1)  # not every table has a row 4
            torch.testing.assert_close(table[rows], expected[rows], rtol=1e-6, atol=1e-8)


def test_adam_of_each_row_is_adam_of_its_own_updates(tables: Tables) -> None:
    """A row moves as in dense Adam on the updates that touch it, whatever happens to other rows in between."""
    losses = [some_rows(1, 4), some_rows(0), some_rows(1), some_rows(0, 4), some_rows(1)]
    touched = {1: [0, 2, 4], 4: [0, 3], 0: [1, 3]}
    before = copy_of(tables)
    update(tables, RowAdam(tables, 0.05, max_norm=None), *losses)
    for row, updates in touched.items():
        wanted = reference(before, TORCH[RowAdam], None, *[losses[i] for i in updates])
        torch.testing.assert_close(tables["entity"][row], wanted["entity"][row], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_norm", [1.0, None])
def test_anchors_are_the_gradient_of_the_squared_change(tables: Tables, kind: Kind, max_norm: float | None) -> None:
    before = copy_of(tables)

    def squares(some: Tables) -> Tensor:
        return torch.stack([(table - before[name]).square().sum() for name, table in some.items()]).sum()

    wanted = reference(tables, TORCH[kind], max_norm, *[lambda some: everything(some) + 0.7 * squares(some)] * 5)
    optimizer = kind(tables, 0.05, max_norm=max_norm, anchor_weight=0.7)
    update(tables, optimizer, *[everything] * 5)
    assert_same(tables, wanted, rtol=1e-9)
    assert optimizer.anchor_loss().item() == pytest.approx(0.7 * squares(tables).item())


@pytest.mark.parametrize("kind", KINDS)
def test_some_rows_have_no_anchor(tables: Tables, kind: Kind) -> None:
    """Rows without an anchor move as if there were none, the others as if all had one."""

    def after(**options: Any) -> tuple[Tensor, float]:
        twin = copy_of(tables)
        optimizer = kind(twin, 0.05, max_norm=None, **options)
        update(twin, optimizer, *[everything] * 4)
        return twin["entity"].detach(), optimizer.anchor_loss().item()

    (free, _), (held, _) = after(), after(anchor_weight=5.0)
    mixed, loss = after(anchor_weight=5.0, anchored=lambda name, index: (index != 0) & (name == "entity"))
    assert torch.equal(mixed[0], free[0])
    assert torch.equal(mixed[1:], held[1:])
    assert not torch.allclose(free[1:], held[1:])
    assert loss == pytest.approx(5 * (mixed - tables["entity"])[1:].square().sum().item())


# Touched rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("sparse", [True, False])
def test_only_touched_rows_move(kind: Kind, name: str, weight_decay: float, sparse: bool) -> None:
    quads = torch.tensor([(0, 0, 1, 1), (3, 1, 3, 2), (1, 0, 3, 2)])
    touched = {"entity": [0, 1, 3], "relation": [0, 1], "time": [1, 2]}
    model = small_model(name, 30, 3, 4)
    model.sparse_gradients = sparse
    tables = model.tables()
    before = {table: values.detach().clone() for table, values in tables.items()}
    optimizer = kind(tables, 0.05, weight_decay=weight_decay, anchor_weight=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(quads).square().sum().backward()
        optimizer.step()
        for table, index in optimizer.touched.items():
            assert sorted(index.tolist()) == touched[model.axes[table]]
    for table, values in tables.items():
        moved = (values != before[table]).any(1).nonzero().flatten().tolist()
        assert moved == touched[model.axes[table]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_sparse_and_dense_gradients(kind: Kind, dtype: torch.dtype) -> None:
    tables = make_tables(dtype)
    twin = copy_of(tables)
    options = {"weight_decay": 0.1, "anchor_weight": 0.3, "max_norm": 0.5}
    one, other = kind(tables, 0.05, **options), kind(twin, 0.05, **options)
    generator = torch.Generator().manual_seed(0)
    for rows in ([1, 4], [0, 2, 4], [5], [0, 1, 2, 4, 5]):
        gradient = torch.randn(len(rows), 3, generator=generator).to(dtype)
        tables["entity"].grad = torch.sparse_coo_tensor(torch.tensor([rows]), gradient.clone(), (7, 3))
        twin["entity"].grad = torch.zeros(7, 3, dtype=dtype).index_copy(0, torch.tensor(rows), gradient)
        one.step()
        other.step()
        torch.testing.assert_close(tables["entity"], twin["entity"])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_left_as_they_are(tables: Tables, kind: Kind) -> None:
    """Other code may look at gradients after the update."""
    optimizer = kind(tables, 0.05, max_norm=0.01, anchor_weight=1.0)
    for loss in (everything, some_rows(1)):
        optimizer.zero_grad()
        loss(tables).backward()
        wanted = {name: table.grad.clone() for name, table in tables.items() if table.grad is not None}
        optimizer.step()
        for name, gradient in wanted.items():
            assert torch.equal(tables[name].grad, gradient)  # type: ignore[arg-type]


def test_without_gradients_nothing_moves(tables: Tables) -> None:
    before = copy_of(tables)
    optimizer = RowAdam(tables, 0.05)
    optimizer.step()
    assert optimizer.touched == {}
    assert_same_bits(tables, before)


def test_a_norm_of_ones_own(tables: Tables) -> None:
    """Tables in several processes have a norm over all of them."""
    asked = []

    def norm(gradients: dict[str, Tensor]) -> Tensor:
        asked.append(sorted(gradients))
        return 2 * gradient_norm(gradients)

    twin = copy_of(tables)
    update(tables, RowAdagrad(tables, 0.05, max_norm=0.2, norm=norm), some_rows(1))
    update(twin, RowAdagrad(twin, 0.05, max_norm=0.1), some_rows(1))
    assert asked == [["entity", "relation"]]
    assert_same(tables, twin)


# As a torch optimizer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_state(kind: Kind, dtype: torch.dtype) -> None:
    tables = make_tables(dtype)
    rows = TouchedRows(tables)
    optimizer = kind(tables, 0.05, rows=rows, anchor_weight=0.3)
    losses: list[Loss] = [some_rows(1, 4), some_rows(0), some_rows(4)]
    update(tables, optimizer, *losses)
    twin = copy_of(tables)
    other_rows = TouchedRows(twin)
    other = kind(twin, 0.01, rows=other_rows, anchor_weight=0.3)
    other_rows.load_state_dict(copy.deepcopy(rows.state_dict()))
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert other.param_groups[0]["lr"] == 0.05
    assert other.anchor_loss().item() == optimizer.anchor_loss().item() > 0
    for loss in (some_rows(4, 5), everything, some_rows(0)):
        update(tables, optimizer, loss)
        update(twin, other, loss)
        assert_same_bits(twin, tables)
    assert other.anchor_loss().item() == optimizer.anchor_loss().item()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_a_scheduler(kind: Kind, dtype: torch.dtype) -> None:
    tables = make_tables(dtype)
    optimizer = kind(tables, 0.05)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.0 if epoch == 1 else 1.0)
    update(tables, optimizer, everything)
    scheduler.step()
    moved = copy_of(tables)
    assert not torch.equal(moved["entity"], make_tables(dtype)["entity"])
    update(tables, optimizer, everything)
    assert_same_bits(tables, moved)
    scheduler.step()
    update(tables, optimizer, everything)
    assert not torch.equal(moved["entity"], tables["entity"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_a_gradient_scaler(kind: Kind, dtype: torch.dtype) -> None:
    tables = make_tables(dtype)
    twin = copy_of(tables)
    optimizer, plain = kind(tables, 0.05, max_norm=0.1), kind(twin, 0.05, max_norm=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(some_rows(1, 4)(tables)).backward()
        scaler.step(optimizer)
        scaler.update()
        update(twin, plain, some_rows(1, 4))
    assert_same_bits(tables, twin)
    before = copy_of(tables)
    optimizer.zero_grad()
    scaler.scale(everything(tables) * math.inf).backward()
    scaler.step(optimizer)
    assert_same_bits(tables, before)


def test_a_closure(tables: Tables) -> None:
    optimizer = RowAdam(tables, 0.05)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = everything(tables)
        loss.backward()
        return loss

    wanted = everything(tables).item()
    assert optimizer.step(closure).item() == wanted
    assert everything(tables).item() < wanted


def test_a_sequence_of_tables(tables: Tables) -> None:
    twin = copy_of(tables)
    update(tables, RowAdam(tables, 0.05), everything)
    update(twin, RowAdam(list(twin.values()), 0.05), everything)
    assert_same_bits(twin, tables)


def test_the_base_class_has_no_update(tables: Tables) -> None:
    class Own(RowOptimizer):
        state_names = ()

    optimizer = Own(tables, {"lr": 1.0})
    everything(tables).backward()
    with pytest.raises(NotImplementedError):
        optimizer.step()


@pytest.mark.skipif(not native.is_available(), reason="the kernels were not compiled")
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "anchor_weight": 2.0, "max_norm": 0.1}], ids=str)
def test_kernel_and_torch(options: dict[str, float]) -> None:
    losses = [some_rows(1, 4), everything, some_rows(2), everything]
    tables, twin = make_tables(torch.float), make_tables(torch.float)
    update(tables, RowAdam(tables, 0.05, **options), *losses)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_KERNELS", None)
        update(twin, RowAdam(twin, 0.05, **options), *losses)  # type: ignore[arg-type]
    for name, table in tables.items():
        torch.testing.assert_close(table, twin[name], rtol=1e-5, atol=1e-6)
