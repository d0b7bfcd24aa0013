"""The layouts; the rest of the encoder is tested with the others in test_encoders.py."""

import pytest
import torch
from models.encoders.common import SIZES, check_all, make, rows
from oracles.scores import diachronic

from tkg_incremental.models.encoders import DiachronicEncoder


@pytest.mark.parametrize("share", [0.25, 0.5, 0.3, 1.0])
def test_each_half_has_its_temporal_channels(share: float) -> None:
    encoder = make(DiachronicEncoder, temporal_share=share, layout="paper")
    vectors, frequency, phase = (rows(encoder, name) for name in ("entity_vectors", "frequency", "phase"))
    moving, still = round(4 * share), 4 - round(4 * share)
    assert len(frequency[0]) == 2 * moving
    found = encoder.entity(torch.tensor([0, 4]), torch.tensor([3, 6])).tolist()
    for row, i, t in zip(found, [0, 4], [3, 6], strict=True):
        for half in (0, 1):
            own = slice(half * moving, (half + 1) * moving)
            static = vectors[i][2 * moving + half * still :][:still]
            expected = diachronic(vectors[i][own] + static, frequency[i][own], phase[i][own], t)
            assert row[4 * half : 4 * half + 4] == pytest.approx(expected)


@pytest.mark.parametrize("layout", ["tie", "paper"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_contract(layout: str, share: float) -> None:
    check_all(DiachronicEncoder, layout=layout, temporal_share=share)


def test_kernels_in_single_precision() -> None:
    encoder = DiachronicEncoder(*SIZES, layout="paper")
    order = torch.arange(5)
    torch.testing.assert_close(encoder.encode_known(order, [3], [5]), encoder.entity(order, torch.tensor(3)))


def test_layouts() -> None:
    with pytest.raises(ValueError, match=r"layout must be 'tie' or 'paper' \(got 'other'\)"):
        make(DiachronicEncoder, layout="other")
    with pytest.raises(ValueError, match=r"hidden_channels must be even with layout='paper' \(got 7\)"):
        DiachronicEncoder(2, 2, 2, 7, layout="paper")
