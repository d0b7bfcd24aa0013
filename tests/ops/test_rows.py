import pytest
import torch
from torch import Tensor

from tkg_incremental.ops.rows import former_rows, look_up, pull_back_rows, touched_rows, with_rows

INDEX = torch.tensor([[4, 0], [4, 2]])  # a row twice, and some not at all


def draw_vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def test_rows_and_their_gradient() -> None:
    table, weights = draw_vectors(5, 3).requires_grad_(), draw_vectors(2, 2, 3)
    assert torch.equal(look_up(table, INDEX), table[INDEX])
    (wanted,) = torch.autograd.grad((table[INDEX] * weights).sum(), table)
    (found,) = torch.autograd.grad((look_up(table, INDEX) * weights).sum(), table)
    assert torch.allclose(found, wanted)


def test_rows_beside_another_use_of_the_table() -> None:
    source, weights = draw_vectors(5, 3).requires_grad_(), draw_vectors(2, 2, 3)
    table, rows = with_rows(source * 2, INDEX)
    assert torch.equal(table, source * 2)
    assert torch.equal(rows, table[INDEX])
    (found,) = torch.autograd.grad(table.square().sum() + (rows * weights).sum(), source)
    plain = source * 2
    (wanted,) = torch.autograd.grad(plain.square().sum() + (plain[INDEX] * weights).sum(), source)
    assert torch.allclose(found, wanted)


def test_rows_without_another_use_of_the_table() -> None:
    source, weights = draw_vectors(5, 3).requires_grad_(), draw_vectors(2, 2, 3)
    _, rows = with_rows(source * 2, INDEX)
    (found,) = torch.autograd.grad((rows * weights).sum(), source)
    (wanted,) = torch.autograd.grad(((source * 2)[INDEX] * weights).sum(), source)
    assert torch.allclose(found, wanted)


@pytest.mark.parametrize("index", [[1, 7], [7, 1], [7, 1, 7], []], ids=str)
def test_touched_rows_of_a_sparse_gradient(index: list[int]) -> None:
    values = draw_vectors(len(index), 3)
    gradient = torch.sparse_coo_tensor(torch.tensor([index], dtype=torch.long), values, (9, 3))
    where, rows = touched_rows(gradient)
    assert where.tolist() == sorted(set(index))
    assert torch.allclose(rows, gradient.to_dense()[where])


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("slots", [None, torch.tensor([3, 0, 1])], ids=["in order", "slots"])
def test_pulled_back(slots: Tensor | None, dtype: torch.dtype) -> None:
    table, former, gradient = (draw_vectors(rows, 5).to(dtype) for rows in (9, 4, 3))
    strength, index = torch.tensor([[1.0], [0.0], [2.0], [3.0]], dtype=dtype), torch.tensor([8, 2, 4])
    wanted = gradient.clone()
    for i, slot in enumerate([0, 1, 2] if slots is None else slots.tolist()):
        wanted[i] += strength[slot] * (table[index[i]] - former[slot])
    pulled = gradient.clone()
    at = 3 if slots is None else 4
    pull_back_rows(pulled, table, index, former[:at], strength[:at], slots)
    torch.testing.assert_close(pulled, wanted)


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("touched", [[], [4, 0], [0, 1, 2, 3, 4]], ids=str)
def test_rows_as_they_were(touched: list[int], dtype: torch.dtype) -> None:
    table, former = draw_vectors(5, 3).to(dtype), draw_vectors(len(touched), 3).to(dtype)
    slot_of = torch.full((5,), -1, dtype=torch.int32)
    slot_of[touched] = torch.arange(len(touched), dtype=torch.int32)
    wanted = table.clone()
    wanted[touched] = former
    assert torch.equal(former_rows(table, INDEX, slot_of, former), wanted[INDEX])
    assert torch.equal(former_rows(table, INDEX.t(), slot_of, former), wanted[INDEX.t()])
