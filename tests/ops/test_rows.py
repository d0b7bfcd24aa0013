import torch
from torch import Tensor

from tkg_incremental.ops.rows import look_up, with_rows

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
