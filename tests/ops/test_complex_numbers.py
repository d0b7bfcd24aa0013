import pytest
import torch
from oracles.complex_vectors import times, to_complex, to_real
from torch import Tensor

from tkg_incremental.ops.complex_numbers import complex_product, product_with_conjugate, sum_of_moduli


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def test_products() -> None:
    a, b = draw(5, 6), draw(5, 6, seed=1)
    pairs = [(to_complex(x), to_complex(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    for found, (x, y) in zip(complex_product(a, b).tolist(), pairs, strict=True):
        assert found == pytest.approx(to_real(times(x, y)))
    for found, (x, y) in zip(product_with_conjugate(a, b).tolist(), pairs, strict=True):
        assert found == pytest.approx(to_real(times(x, [z.conjugate() for z in y])))


@pytest.mark.parametrize("product", [complex_product, product_with_conjugate])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((2, 3, 4), (3, 4)), ((4,), (3, 4))])
def test_gradients_of_products(product: object, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert torch.autograd.gradcheck(product, [draw(*shape, seed=i) for i, shape in enumerate(shapes)])  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [2, 3, 4, 5])
def test_sums_of_moduli(p: int) -> None:
    x = draw(4, 6)
    wanted = sum(abs(z) ** p for row in x.tolist() for z in to_complex(row))
    assert sum_of_moduli(x, p).item() == pytest.approx(wanted)
    assert torch.autograd.gradcheck(lambda x: sum_of_moduli(x, p), [x])  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [2, 3, 4, 5])
def test_the_gradient_at_zero_is_zero(p: int) -> None:
    x = torch.zeros(2, 4, requires_grad=True)
    sum_of_moduli(x, p).backward()
    assert torch.equal(x.grad, torch.zeros(2, 4))  # type: ignore[arg-type]


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"p must be at least 2 \(got 1\)"):
        sum_of_moduli(torch.ones(2), 1)
    with pytest.raises(ValueError, match=r"complex vectors must have an even width \(got 3\)"):
        sum_of_moduli(torch.ones(3), 3)
