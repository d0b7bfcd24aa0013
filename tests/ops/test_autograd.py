import gc
import weakref

import pytest
import torch
from torch import Tensor

from tkg_incremental.ops.autograd import Computed, hand_on, with_gradients


def draw_vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def product(table: Tensor, weights: Tensor) -> Computed:
    return table * weights, (table, weights)


def gradients_of_product(grad: Tensor, left: list[Tensor | None], table: Tensor, weights: Tensor) -> list[Tensor]:
    total = torch.zeros_like(table) if left[0] is None else left[0]
    return [total.addcmul_(grad, weights), grad * table]


@pytest.mark.parametrize("uses", [1, 2, 3])
@pytest.mark.parametrize("goes_on", [False, True])
def test_the_gradients_of_all_uses_are_summed(uses: int, goes_on: bool) -> None:
    source, weights = draw_vectors(3, 2).requires_grad_(), [draw_vectors(3, 2 + i) for i in range(uses)]
    weights = [each[:, :2].clone().requires_grad_() for each in weights]
    table, loss, plain = source * 2, source.new_zeros(()), source.new_zeros(())
    for each in weights:
        table, found = hand_on([table], [each], product, gradients_of_product)
        loss, plain = loss + found.square().sum(), plain + (source * 2 * each).square().sum()
    if goes_on:
        loss, plain = loss + table.square().sum(), plain + (source * 2).square().sum()
    gradients = torch.autograd.grad(loss, (source, *weights))
    for gradient, wanted in zip(gradients, torch.autograd.grad(plain, (source, *weights)), strict=True):
        assert torch.allclose(gradient, wanted)


def test_a_result_that_is_not_used() -> None:
    source, weights = draw_vectors(3, 2).requires_grad_(), draw_vectors(3, 2).requires_grad_()
    table, _ = hand_on([source * 2], [weights], product, gradients_of_product)
    found, none = torch.autograd.grad(table.sum(), (source, weights), allow_unused=True)
    assert torch.equal(found, torch.full_like(source, 2.0))
    assert none is None


def test_nothing_is_kept_after_the_last_reference() -> None:
    source = draw_vectors(3, 2).requires_grad_()
    gc.disable()
    try:
        table, found = hand_on([source * 2], [draw_vectors(3, 2)], product, gradients_of_product)
        kept = weakref.ref(found)
        del table, found
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_a_loss_with_its_gradients(factor: float) -> None:
    a, b = draw_vectors(3).requires_grad_(), draw_vectors(4)[:3].clone().requires_grad_()
    loss = with_gradients(lambda x, y: ((x * y).sum(), (y.clone(), x.clone())), a, b)
    assert torch.equal(loss, (a * b).sum())
    found = torch.autograd.grad(factor * loss, (a, b))
    assert torch.allclose(found[0], factor * b)
    assert torch.allclose(found[1], factor * a)
