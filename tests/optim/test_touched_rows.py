import copy

import pytest
import torch
from torch import Tensor

from tkg_incremental.optim import TouchedRows


@pytest.fixture
def table() -> Tensor:
    return torch.arange(12.0).view(6, 2)


def touch(rows: TouchedRows, table: Tensor, *index: int) -> list[int]:
    slots = rows.slots("x", torch.tensor(index))
    table[list(index)] += 100
    return slots.tolist()


def test_slots_and_former_values(table: Tensor) -> None:
    before, rows = table.clone(), TouchedRows({"x": table})
    assert touch(rows, table, 4, 1) == [0, 1]
    assert touch(rows, table, 1, 2) == [1, 2]
    assert rows.index["x"].values.tolist() == [4, 1, 2]
    assert torch.equal(rows.former("x"), before[[4, 1, 2]])
    index = torch.tensor([[0, 1], [4, 5]])
    assert torch.equal(rows.look_up("x", index), before[index])
    assert not torch.equal(table, before)


def test_save_and_restore(table: Tensor) -> None:
    before, rows = table.clone(), TouchedRows({"x": table})
    touch(rows, table, 4)
    rows.save()
    saved = table.clone()
    touch(rows, table, 4, 0)  # row 0 is first touched after the save
    rows.restore()
    assert torch.equal(table, saved)
    assert torch.equal(rows.look_up("x", torch.arange(6)), before)


def test_restore_without_save(table: Tensor) -> None:
    rows = TouchedRows({"x": table})
    touch(rows, table, 4)
    now = table.clone()
    rows.restore()
    assert torch.equal(table, now)


def test_state(table: Tensor) -> None:
    before, rows = table.clone(), TouchedRows({"x": table})
    touch(rows, table, 4, 1)
    rows.save()
    touch(rows, table, 2)
    twin = table.clone()
    other = TouchedRows({"x": twin})
    other.slots("x", torch.tensor([5]))  # forgotten by loading
    other.load_state_dict(copy.deepcopy(rows.state_dict()))
    assert other.index["x"].values.tolist() == [4, 1, 2]
    assert torch.equal(other.look_up("x", torch.arange(6)), before)
    assert touch(other, twin, 2, 5) == touch(rows, table, 2, 5) == [2, 3]
    rows.restore()
    other.restore()
    assert torch.equal(table, twin)
