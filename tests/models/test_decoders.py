import pytest
import torch
from oracles.scores import complex_, distmult, simple, transe
from torch import Tensor

from tkg_incremental.models import ComplEx, Decoder, DistMult, SimplE, TransE
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
        if isinstance(decoder, TransE):
            return transe(head, rel, tail, p={"l1": 1, "l2": 2}[decoder.similarity])
        return {ComplEx: complex_, DistMult: distmult, SimplE: simple}[type(decoder)](head, rel, tail)

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
        assert torch.allclose(decoder(head, rel, tail), decoder(tail, rel, head)) == isinstance(decoder, DistMult)


def test_norms() -> None:
    with pytest.raises(ValueError, match=r"p must be 1 or 2 \(got 3\)"):
        TransE(p=3)
