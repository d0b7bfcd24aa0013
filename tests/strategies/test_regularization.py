from itertools import pairwise

import pytest
import torch
from oracles.complex_vectors import to_complex

from tkg_incremental.strategies.regularization import n3, nuclear_norm, temporal_smoothness


def norm(vector: list[float], p: int) -> float:
    return sum(abs(z) ** p for z in to_complex(vector))


@pytest.fixture
def factors() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(4, 6, dtype=torch.double) for _ in range(3)]


def test_n3(factors: list[torch.Tensor]) -> None:
    expected = sum(norm(row, 3) for factor in factors for row in factor.tolist()) / 4
    assert n3(factors).item() == pytest.approx(expected)
    expected = sum(w * norm(row, 3) for w, f in zip([2, 1, 2], factors, strict=True) for row in f.tolist()) / 4
    assert n3(factors, [2, 1, 2]).item() == pytest.approx(expected)
    assert n3([torch.tensor([[3.0, 4.0]])]).item() == 125  # |3 + 4i|³


@pytest.mark.parametrize("p", [2, 3, 4])
def test_powers(p: int, factors: list[torch.Tensor]) -> None:
    expected = sum(norm(row, p) for factor in factors for row in factor.tolist()) / 4
    assert nuclear_norm(factors, p).item() == pytest.approx(expected)
    assert torch.autograd.gradcheck(lambda *x: nuclear_norm(x, p), [f.requires_grad_() for f in factors])


@pytest.mark.parametrize("p", [3, 4])
def test_temporal_smoothness(p: int, factors: list[torch.Tensor]) -> None:
    table = factors[0]
    lines = table.tolist()
    steps = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairwise(lines)]
    assert temporal_smoothness(table, p).item() == pytest.approx(sum(norm(step, p) for step in steps) / 3)
    assert torch.autograd.gradcheck(lambda x: temporal_smoothness(x, p), [table.requires_grad_()])


@pytest.mark.parametrize("p", [3, 4])
def test_equal_steps_have_no_gradient(p: int) -> None:
    table = torch.ones(5, 4, requires_grad=True)
    loss = temporal_smoothness(table, p)
    loss.backward()
    assert loss.item() == 0
    assert table.grad is not None
    assert (table.grad == 0).all()
    assert temporal_smoothness(torch.ones(1, 4)).item() == 0


def test_errors() -> None:
    with pytest.raises(ValueError, match="factors must not be empty"):
        n3([])
    with pytest.raises(ValueError, match=r"weights must be one for each of 1 factors \(got 2\)"):
        n3([torch.ones(2, 4)], [1, 2])
    with pytest.raises(ValueError, match=r"complex vectors must have an even width \(got 3\)"):
        n3([torch.ones(2, 3)])
    with pytest.raises(ValueError, match=r"p must be at least 2 \(got 1\)"):
        temporal_smoothness(torch.ones(2, 4), p=1)
