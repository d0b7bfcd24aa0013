import pytest
import torch
from models.encoders.common import check_all, make, rows

from tkg_incremental.models.encoders import TTransEEncoder


def test_formula() -> None:
    encoder = make(TTransEEncoder)
    relations, steps = rows(encoder, "relation_vectors"), rows(encoder, "time_vectors")
    found = encoder.relation(torch.tensor([0, 1, 1]), torch.tensor([0, 3, 6]))
    for row, r, t in zip(found.tolist(), [0, 1, 1], [0, 3, 6], strict=True):
        assert row == pytest.approx([a + b for a, b in zip(relations[r], steps[t], strict=True)])


def test_contract() -> None:
    check_all(TTransEEncoder)
    assert TTransEEncoder.copies_last_step
