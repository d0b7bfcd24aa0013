import pytest
import torch
from models.encoders.common import check_all, make, rows
from oracles.complex_vectors import plus, times, to_complex, to_real

from tkg_incremental.models.encoders import TNTComplExEncoder


def test_formula() -> None:
    encoder = make(TNTComplExEncoder)
    temporal, static, steps = (
        [to_complex(row) for row in rows(encoder, name)]
        for name in ("relation_vectors", "static_relation_vectors", "time_vectors")
    )
    index, time = [0, 1, 1], [0, 3, 6]
    found = encoder.relation(torch.tensor(index), torch.tensor(time))
    first, second = encoder.relation_factors(torch.tensor(index), torch.tensor(time))  # type: ignore[operator]
    for i, (r, t) in enumerate(zip(index, time, strict=True)):
        product = times(temporal[r], steps[t])
        assert found[i].tolist() == pytest.approx(to_real(plus(product, static[r])))
        assert first[i].tolist() == pytest.approx(to_real(product))
        assert second[i].tolist() == pytest.approx(to_real(static[r]))


def test_contract() -> None:
    check_all(TNTComplExEncoder)
    assert TNTComplExEncoder.copies_last_step
