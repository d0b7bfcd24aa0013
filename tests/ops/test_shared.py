import pytest
import torch
from torch import Tensor

from tkg_incremental.ops import native
from tkg_incremental.ops.scores import Similarity, compare
from tkg_incremental.ops.shared import SharedTable

INDEX = torch.tensor([[1, 0, 1], [0, 2, 2]])
OTHERS = torch.tensor([[1, 0, 1], [3, 5, 5]])


def draw_vectors(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


# In single precision with the kernels, where they were compiled; in double precision without.
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
@pytest.mark.parametrize("similarity", ["dot", "l1", "l2"])
@pytest.mark.parametrize("used", [(True, True, True), (False, True, True), (True, False, False), (False, False, True)])
def test_gradients_of_all_uses(similarity: Similarity, dtype: torch.dtype, used: tuple[bool, ...]) -> None:
    source, query = draw_vectors(7, 4, dtype=dtype).requires_grad_(), draw_vectors(2, 4, dtype=dtype).requires_grad_()
    weights = draw_vectors(2, 3, dtype=dtype)

    def total(scores: Tensor, rows: Tensor, others: Tensor) -> Tensor:
        parts = (scores * weights).sum(), rows.square().sum(), (others * weights).sum()
        return sum((part for part, is_used in zip(parts, used, strict=True) if is_used), start=query.sum())

    table = SharedTable(source * 2)
    assert len(table) == 7
    scores = table.sampled_scores(query, OTHERS, similarity)
    rows = table.rows(torch.tensor([6, 3, 6]))
    others = table.sampled_scores(rows[:2], INDEX, similarity)
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
    table = SharedTable(source * 1)
    table.vectors.register_hook(lambda gradient: places.append(gradient.data_ptr()))
    for _ in range(3):
        table.sampled_scores(torch.ones(2, 4), OTHERS, "dot")
    losses = [table.rows(INDEX).sum(), table.sampled_scores(torch.ones(2, 4), INDEX, "dot").sum()]
    table.vectors.register_hook(lambda gradient: places.append(gradient.data_ptr()))
    losses.append(table.sampled_scores(torch.ones(2, 4), INDEX, "l1").sum())
    sum(losses).backward()  # type: ignore[union-attr]
    assert len(places) == 2
    assert places[0] == places[1]
