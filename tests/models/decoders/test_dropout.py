import pytest
import torch

from tkg_incremental.models.decoders import Dropout, SimplE, TransE


def test_only_in_training() -> None:
    torch.manual_seed(0)
    given, rel = torch.randn(100, 20), torch.randn(100, 20)
    plain, decoder = SimplE(), Dropout(SimplE(), 0.4)
    expected = plain.query(given, rel, "tail")
    assert torch.equal(decoder.eval().query(given, rel, "tail"), expected)
    found = decoder.train().query(given, rel, "tail")
    kept = found != 0
    torch.testing.assert_close(found[kept], expected[kept] / 0.6)
    assert kept.double().mean().item() == pytest.approx(0.6, abs=0.05)
    assert decoder.similarity == "dot"


def test_options() -> None:
    with pytest.raises(ValueError, match=r"p must lie in \[0, 1\) \(got 1\)"):
        Dropout(SimplE(), 1)
    with pytest.raises(ValueError, match=r"decoder must have the similarity 'dot' \(got 'l1'\)"):
        Dropout(TransE(), 0.4)
