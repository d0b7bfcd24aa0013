import pytest
import torch
from models.encoders.common import check_all, make, rows
from oracles.complex_vectors import times, to_complex, to_real

from tkg_incremental.models.encoders import TComplExEncoder


def test_formula() -> None:
    encoder = make(TComplExEncoder)
    relations, steps = rows(encoder, "relation_vectors"), rows(encoder, "time_vectors")
    found = encoder.relation(torch.tensor([0, 1, 1]), torch.tensor([0, 3, 6]))
    for row, r, t in zip(found.tolist(), [0, 1, 1], [0, 3, 6], strict=True):
        assert row == pytest.approx(to_real(times(to_complex(relations[r]), to_complex(steps[t]))))
    assert encoder.entity(torch.tensor([4]), torch.tensor([2])).tolist() == [rows(encoder, "entity_vectors")[4]]


def test_contract() -> None:
    check_all(TComplExEncoder)
    assert TComplExEncoder.copies_last_step
    assert TComplExEncoder.static_entities


def test_factors() -> None:
    encoder, where = make(TComplExEncoder), (torch.tensor([1]), torch.tensor([2]))
    (factor,) = encoder.relation_factors(*where)  # type: ignore[operator]
    assert torch.equal(factor, encoder.relation(*where))


@pytest.mark.parametrize("width", [0, 7])
def test_widths(width: int) -> None:
    with pytest.raises(ValueError, match=rf"hidden_channels must be even .* \(got {width}\)"):
        TComplExEncoder(2, 2, 2, width)
