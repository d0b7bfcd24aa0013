import pytest
import torch
from models.encoders.common import check_all, make, rows
from oracles.complex_vectors import rotated

from tkg_incremental.models.encoders import TeRoEncoder


def test_formula() -> None:
    encoder = make(TeRoEncoder)
    entities, angles = rows(encoder, "entity_vectors"), rows(encoder, "angles")
    found = encoder.entity(torch.tensor([0, 1, 4]), torch.tensor([0, 3, 6]))
    for row, i, t in zip(found.tolist(), [0, 1, 4], [0, 3, 6], strict=True):
        assert row == pytest.approx(rotated(entities[i], angles[t]))
    assert encoder.relation(torch.tensor([1]), torch.tensor([2])).tolist() == [rows(encoder, "relation_vectors")[1]]


def test_a_rotation_keeps_the_moduli() -> None:
    encoder = make(TeRoEncoder)
    re, im = encoder.entity(torch.arange(5), torch.tensor(3)).chunk(2, dim=-1)
    a, b = encoder.get_parameter("entity_vectors").chunk(2, dim=-1)
    torch.testing.assert_close(re.square() + im.square(), a.square() + b.square())


def test_contract() -> None:
    check_all(TeRoEncoder)
    assert TeRoEncoder.copies_last_step


def test_initial_angles() -> None:
    angles = TeRoEncoder(2, 2, 300, 8, max_angle=3.0).get_parameter("angles")
    assert 2.5 < angles.abs().max() <= 3.0
    with pytest.raises(ValueError, match=r"max_angle must be positive \(got 0\)"):
        TeRoEncoder(2, 2, 2, 8, max_angle=0)
