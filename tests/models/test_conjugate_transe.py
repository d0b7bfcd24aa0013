import pytest
import torch
from oracles.complex_vectors import to_complex

from tkg_incremental.models.decoders import ConjugateTransE
from tkg_incremental.ops.scores import compare


def test_score() -> None:
    torch.manual_seed(0)
    head, rel, tail = (torch.randn(5, 6, dtype=torch.double) for _ in range(3))
    found = ConjugateTransE()(head, rel, tail).tolist()
    for score, *vectors in zip(found, head.tolist(), rel.tolist(), tail.tolist(), strict=True):
        h, r, t = map(to_complex, vectors)
        rest = [a + b - c.conjugate() for a, b, c in zip(h, r, t, strict=True)]
        assert score == pytest.approx(-sum(abs(z.real) + abs(z.imag) for z in rest))


def test_either_side_gives_the_same_score() -> None:
    torch.manual_seed(0)
    head, rel, tail = (torch.randn(5, 6, dtype=torch.double) for _ in range(3))
    decoder = ConjugateTransE()
    asked = decoder.query(tail, rel, "head")
    torch.testing.assert_close(compare(asked, head, decoder.similarity), decoder(head, rel, tail))


def test_a_score_by_hand() -> None:
    head, rel, tail = (torch.tensor(v) for v in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]))
    assert ConjugateTransE()(head, rel, tail).item() == -13  # (1+2i) + (3+4i) − (5−6i) = −1 + 12i


def test_gradients() -> None:
    torch.manual_seed(0)
    vectors = [torch.randn(3, 4, dtype=torch.double, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(ConjugateTransE(), vectors)
