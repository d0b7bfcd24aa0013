import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles.scores import Vector
from torch import Tensor

from tkg_incremental.ops import scores
from tkg_incremental.ops.scores import Similarity, all_scores, compare, sampled_scores

SIMILARITIES = ("dot", "l1", "l2")


def by_hand(query: Vector, candidate: Vector, similarity: str) -> float:
    if similarity == "dot":
        return sum(a * b for a, b in zip(query, candidate, strict=True))
    p = 1 if similarity == "l1" else 2
    return -(sum(abs(a - b) ** p for a, b in zip(query, candidate, strict=True)) ** (1 / p))


def draw_vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_all_ways_agree_with_the_definition(similarity: Similarity) -> None:
    query, table = draw_vectors(3, 4), draw_vectors(5, 4)
    expected = [[by_hand(q, c, similarity) for c in table.tolist()] for q in query.tolist()]
    wanted = torch.tensor(expected, dtype=torch.double)
    everything = torch.arange(5).expand(3, 5)
    assert torch.allclose(compare(query[:, None], table, similarity), wanted)
    assert torch.allclose(all_scores(query, table, similarity), wanted)
    assert torch.allclose(sampled_scores(query, table, everything, similarity), wanted)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@given(st.data())
def test_sampled_scores_and_gradients(similarity: Similarity, data: st.DataObject) -> None:
    rows, samples, candidates, width = (data.draw(st.integers(1, limit)) for limit in (4, 6, 5, 3))
    # Few candidates: some are drawn twice, by one row or several, and some by none.
    place = st.integers(0, candidates - 1)
    index = torch.tensor(data.draw(st.lists(place, min_size=rows * samples, max_size=rows * samples)))
    index = index.view(rows, samples)
    query = draw_vectors(rows, width).requires_grad_()
    table = draw_vectors(candidates, width).requires_grad_()
    weights = draw_vectors(rows, samples)

    found = sampled_scores(query, table, index, similarity)
    expected = [[by_hand(query[i].tolist(), table[j].tolist(), similarity) for j in index[i]] for i in range(rows)]
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.double))
    gradients = torch.autograd.grad((found * weights).sum(), (query, table))

    naive = torch.stack([compare(query[i], table[j], similarity) for i in range(rows) for j in index[i]])
    wanted = torch.autograd.grad((naive.view(rows, samples) * weights).sum(), (query, table))
    for gradient, want in zip(gradients, wanted, strict=True):
        assert torch.allclose(gradient, want)


def test_a_distance_taken_a_few_vectors_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    query, table, index = draw_vectors(7, 3), draw_vectors(5, 3), torch.randint(5, (7, 4))
    inputs = query.requires_grad_(), table.requires_grad_()
    weights = draw_vectors(7, 4)
    whole = sampled_scores(query, table, index, "l1")
    gradients = torch.autograd.grad((whole * weights).sum(), inputs)
    for size in (1, 9, 13):  # less than one row, two rows, three
        monkeypatch.setattr(scores, "_VECTORS_AT_A_TIME", size)
        found = sampled_scores(query, table, index, "l1")
        assert torch.equal(found, whole)
        for gradient, want in zip(torch.autograd.grad((found * weights).sum(), inputs), gradients, strict=True):
            assert torch.allclose(gradient, want)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_nothing_to_score(similarity: Similarity) -> None:
    query, table = draw_vectors(0, 4).requires_grad_(), draw_vectors(5, 4).requires_grad_()
    found = sampled_scores(query, table, torch.empty(0, 3, dtype=torch.long), similarity)
    assert found.shape == (0, 3)
    gradients = torch.autograd.grad(found.sum(), (query, table), allow_unused=True)
    assert all(gradient is None or not gradient.any() for gradient in gradients)


def test_weights_of_a_gradient_need_not_be_contiguous() -> None:
    query, table, index = draw_vectors(3, 4), draw_vectors(5, 4).requires_grad_(), torch.randint(5, (3, 2))
    weights = draw_vectors(2, 3).t()
    for similarity in ("dot", "l1"):
        found = torch.autograd.grad(sampled_scores(query, table, index, similarity), table, weights)[0]
        wanted = torch.autograd.grad(compare(query[:, None], table[index], similarity), table, weights)[0]
        assert torch.allclose(found, wanted)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_gradients_of_all_scores(similarity: Similarity, dtype: torch.dtype) -> None:
    query, table = (draw_vectors(rows, 4).to(dtype).requires_grad_() for rows in (3, 5))
    weights = draw_vectors(3, 5).to(dtype)
    found = torch.autograd.grad((all_scores(query, table, similarity) * weights).sum(), (query, table))
    wanted = torch.autograd.grad((compare(query[:, None], table, similarity) * weights).sum(), (query, table))
    for gradient, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, want)
