import pytest
import torch
from torch import Tensor

from tkg_incremental.strategies.regularization import n3, nuclear_norm, temporal_smoothness


def draw_vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(sum(shape)))


def norm(vector: list[float], p: int) -> float:
    """The p-norm of a complex vector to the power of p."""
    half = len(vector) // 2
    return sum(abs(complex(re, im)) ** p for re, im in zip(vector[:half], vector[half:], strict=True))


def test_by_hand() -> None:
    factor = torch.tensor([[3.0, 0.0, 4.0, 0.0]])  # (3 + 4i, 0)
    assert n3([factor]).item() == pytest.approx(125)
    assert nuclear_norm([factor, factor], 4, [1, 2]).item() == pytest.approx(3 * 625)
    assert temporal_smoothness(torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])).item() == pytest.approx(125 / 2)


@pytest.mark.parametrize("p", [2, 3, 4])
def test_nuclear_norm(p: int) -> None:
    factors, weights = [draw_vectors(5, 6), draw_vectors(5, 4)], [0.5, 2.0]
    wanted = sum(w * norm(row, p) / 5 for w, factor in zip(weights, factors, strict=True) for row in factor.tolist())
    assert nuclear_norm(factors, p, weights).item() == pytest.approx(wanted)
    if p == 3:
        assert torch.equal(n3(factors), nuclear_norm(factors))


@pytest.mark.parametrize("p", [2, 3, 4])
def test_smoothness(p: int) -> None:
    table = draw_vectors(6, 4)
    rows = table.tolist()
    wanted = sum(norm([b - a for a, b in zip(rows[i], rows[i + 1], strict=True)], p) for i in range(5)) / 5
    assert temporal_smoothness(table, p).item() == pytest.approx(wanted)


@pytest.mark.parametrize("p", [2, 3, 4])
def test_gradients(p: int) -> None:
    table = draw_vectors(4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: temporal_smoothness(x, p), table)
    assert torch.autograd.gradcheck(lambda x: nuclear_norm([x], p), table)


def test_gradients_at_zero() -> None:
    table = torch.ones(3, 4, requires_grad=True)
    (found,) = torch.autograd.grad(temporal_smoothness(table) + n3([table - 1]), table)
    assert found.isfinite().all()
    assert not found.abs().gt(1e-15).any()


def test_one_step() -> None:
    assert temporal_smoothness(torch.ones(1, 4)).item() == 0


def test_arguments() -> None:
    with pytest.raises(ValueError, match="factors must not be empty"):
        n3([])
    with pytest.raises(ValueError, match=r"weights must be one for each of 1 factors \(got 2\)"):
        n3([torch.ones(1, 2)], [1, 2])
    with pytest.raises(ValueError, match=r"complex vectors must have an even width \(got 3\)"):
        n3([torch.ones(1, 3)])
    with pytest.raises(ValueError, match=r"p must be at least 2 \(got 1\)"):
        nuclear_norm([torch.ones(1, 2)], 1)
