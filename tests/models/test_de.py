import pytest
import torch
from learning import stir
from oracles.scores import diachronic

from tkg_incremental.models import DE


@pytest.mark.parametrize("share", [0.25, 0.5, 0.3, 1.0])
def test_each_half_has_its_temporal_channels(share: float) -> None:
    model = DE(5, 2, 7, 8, temporal_share=share, layout="paper").double()
    stir(model, seed=1)
    vectors, frequency, phase = (model.tables()[name].tolist() for name in ("entity_vectors", "frequency", "phase"))
    moving, still = round(4 * share), 4 - round(4 * share)
    assert len(frequency[0]) == 2 * moving
    found = model.entity(torch.tensor([0, 4]), torch.tensor([3, 6])).tolist()
    for row, i, t in zip(found, [0, 4], [3, 6], strict=True):
        for half in (0, 1):
            own = slice(half * moving, (half + 1) * moving)
            static = vectors[i][2 * moving + half * still :][:still]
            expected = diachronic(vectors[i][own] + static, frequency[i][own], phase[i][own], t)
            assert row[4 * half : 4 * half + 4] == pytest.approx(expected)


def test_layouts() -> None:
    with pytest.raises(ValueError, match=r"layout must be 'tie' or 'paper' \(got 'other'\)"):
        DE(5, 2, 7, 8, layout="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"hidden_channels must be even with layout='paper' \(got 7\)"):
        DE(2, 2, 2, 7, "distmult", layout="paper")


@pytest.mark.parametrize("share", [0.0, -0.5, 1.1])
def test_shares(share: float) -> None:
    with pytest.raises(ValueError, match=r"temporal_share must lie in \(0, 1\]"):
        DE(5, 2, 7, 8, temporal_share=share)
