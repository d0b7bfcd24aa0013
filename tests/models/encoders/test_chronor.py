import pytest
import torch
from models.encoders.common import check_all, make, rows
from oracles.complex_vectors import times, to_complex, to_real

from tkg_incremental.models.encoders import ChronoREncoder


@pytest.mark.parametrize(("share", "channels"), [(0.5, 2), (0.25, 1), (0.75, 3)])
def test_formula(share: float, channels: int) -> None:
    encoder = make(ChronoREncoder, temporal_share=share)
    relations, rotations, steps = (
        [to_complex(row) for row in rows(encoder, name)] for name in ("relation_vectors", "rotations", "time_vectors")
    )
    assert len(steps[0]) == channels
    found = encoder.relation(torch.tensor([0, 1, 1]), torch.tensor([0, 3, 6]))
    for row, r, t in zip(found.tolist(), [0, 1, 1], [0, 3, 6], strict=True):
        assert row == pytest.approx(to_real(times(relations[r] + steps[t], rotations[r])))


def test_contract() -> None:
    check_all(ChronoREncoder)
    assert ChronoREncoder.copies_last_step


@pytest.mark.parametrize("share", [-0.1, 0.0, 1.0])
def test_shares(share: float) -> None:
    with pytest.raises(ValueError, match=rf"temporal_share must leave channels of 4 .* \(got {share}\)"):
        ChronoREncoder(2, 2, 2, 8, temporal_share=share)
