import gc
import weakref

import pytest
import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.autograd import Computed, hand_on, with_gradients
from tkg_incremental.ops.rows import with_rows
from tkg_incremental.ops.scores import Similarity, compare, with_sampled_scores

# Rows of a table of seven rows.
INDEX = torch.tensor([[1, 0, 1], [0, 2, 2]])
OTHERS = torch.tensor([[1, 0, 1], [3, 5, 5]])


def draw_vectors(*shape: int, dtype: torch.dtype = torch.double) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


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


# In single precision with the kernels, where they were compiled; in double precision without.
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("similarity", ["dot", "l1", "l2"])
@pytest.mark.parametrize("used", [(True, True, True), (False, True, True), (True, False, False), (False, False, True)])
def test_gradients_of_rows_and_scores(similarity: Similarity, dtype: torch.dtype, used: tuple[bool, ...]) -> None:
    source, query = draw_vectors(7, 4, dtype=dtype).requires_grad_(), draw_vectors(2, 4, dtype=dtype).requires_grad_()
    weights = draw_vectors(2, 3, dtype=dtype)

    def total(scores: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        parts = (scores * weights).sum(), rows.square().sum(), (others * weights).sum()
        return sum((part for part, is_used in zip(parts, used, strict=True) if is_used), start=query.sum())

    table, scores = with_sampled_scores(source * 2, query, OTHERS, similarity)
    table, rows = with_rows(table, torch.tensor([6, 3, 6]))
    table, others = with_sampled_scores(table, rows[:2], INDEX, similarity)
    found = torch.autograd.grad(total(scores, rows, others), (source, query))

    plain = source * 2
    rows = plain[[6, 3, 6]]
    scores = compare(query[:, None], plain[OTHERS], similarity)
    others = compare(rows[:2, None], plain[INDEX], similarity)
    wanted = torch.autograd.grad(total(scores, rows, others), (source, query))
    for gradient, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, want, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not native.is_available(), reason="the kernels were not compiled")
def test_one_buffer_for_all_gradients() -> None:
    source = draw_vectors(7, 4, dtype=torch.float).requires_grad_()
    places: list[int] = []
    query, table = torch.ones(2, 4), source * 1
    table.register_hook(lambda gradient: places.append(gradient.data_ptr()))
    for _ in range(3):
        table, _unused = with_sampled_scores(table, query, OTHERS, "dot")
    table, rows = with_rows(table, INDEX)
    table, products = with_sampled_scores(table, query, INDEX, "dot")
    table.register_hook(lambda gradient: places.append(gradient.data_ptr()))
    table, distances = with_sampled_scores(table, query, INDEX, "l1")
    (rows.sum() + products.sum() + distances.sum()).backward()
    assert len(places) == 2
    assert places[0] == places[1]
