import pickle

import pytest
import torch
from oracles.scores import complex_, distmult, simple, transe
from torch import Tensor

from tkg_incremental.models.decoders import ComplEx, Decoder, DistMult, SimplE, TransE, make_decoder
from tkg_incremental.ops.answers import SIDES
from tkg_incremental.ops.scores import compare

DECODERS = [ComplEx(), DistMult(), SimplE(), TransE(p=1), TransE(p=2)]


@pytest.fixture
def vectors() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return tuple(torch.randn(5, 6, dtype=torch.double) for _ in range(3))  # type: ignore[return-value]


def test_names() -> None:
    assert [str(decoder) for decoder in DECODERS] == [
        "ComplEx()",
        "DistMult()",
        "SimplE()",
        "TransE(similarity='l1')",
        "TransE(similarity='l2')",
    ]


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_textbook_score(decoder: Decoder, vectors: tuple[Tensor, Tensor, Tensor]) -> None:
    def expected(head: list[float], rel: list[float], tail: list[float]) -> float:
        if decoder.name == "TransE":
            return transe(head, rel, tail, p={"l1": 1, "l2": 2}[decoder.similarity])
        return {"ComplEx": complex_, "DistMult": distmult, "SimplE": simple}[decoder.name](head, rel, tail)

    wanted = [expected(*rows) for rows in zip(*(v.tolist() for v in vectors), strict=True)]
    assert decoder(*vectors).tolist() == pytest.approx(wanted)


def test_scores_by_hand() -> None:
    head, rel, tail = (torch.tensor(v) for v in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]))
    assert ComplEx()(head, rel, tail).item() == 35  # Re((1+2i)(3+4i)(5−6i))
    assert DistMult()(head, rel, tail).item() == 63
    assert SimplE()(head, rel, tail).item() == 29  # (1·3·6 + 5·4·2) / 2
    assert TransE()(head, rel, tail).item() == -1  # |1+3−5| + |2+4−6|


@pytest.mark.parametrize("decoder", DECODERS, ids=str)
def test_either_side_gives_the_same_score(decoder: Decoder, vectors: tuple[Tensor, Tensor, Tensor]) -> None:
    head, rel, tail = vectors
    ends = {"tail": (head, tail), "head": (tail, head)}
    for side in SIDES:
        given, asked = ends[side]
        assert torch.allclose(compare(decoder.query(given, rel, side), asked, decoder.similarity), decoder(*vectors))


def test_relations_are_not_all_symmetric(vectors: tuple[Tensor, Tensor, Tensor]) -> None:
    head, rel, tail = vectors
    for decoder in DECODERS:
        assert torch.allclose(decoder(head, rel, tail), decoder(tail, rel, head)) == (decoder.name == "DistMult")


def test_norms() -> None:
    with pytest.raises(ValueError, match=r"p must be 1 or 2 \(got 3\)"):
        TransE(p=3)


def test_dropout_in_training_only() -> None:
    torch.manual_seed(0)
    given, rel = torch.randn(100, 20), torch.randn(100, 20)
    plain, decoder = SimplE(), make_decoder("simple", dropout=0.4)
    expected = plain.query(given, rel, "tail")
    assert torch.equal(decoder.eval().query(given, rel, "tail"), expected)
    found = decoder.train().query(given, rel, "tail")
    kept = found != 0
    torch.testing.assert_close(found[kept], expected[kept] / 0.6)
    assert kept.double().mean().item() == pytest.approx(0.6, abs=0.05)
    assert str(decoder) == "SimplE(dropout=0.4)"


def test_refused_dropout() -> None:
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\) \(got 1\)"):
        make_decoder("simple", 1)
    with pytest.raises(ValueError, match=r"dropout must be 0 with the similarity 'l1' of TransE \(got 0.4\)"):
        make_decoder("transe", 0.4)


def test_decoders_can_be_pickled(vectors: tuple[Tensor, Tensor, Tensor]) -> None:
    for decoder in DECODERS:
        assert torch.equal(pickle.loads(pickle.dumps(decoder))(*vectors), decoder(*vectors))
