import math

import pytest
import torch
from learning import stir
from oracles.scores import diachronic, hyperplane
from torch import Tensor

from tkg_incremental.models import DiachronicEncoder, Encoder, HyperplaneEncoder, StaticEncoder

SIZES = (5, 2, 7, 4)
ENCODERS: list[type[Encoder]] = [DiachronicEncoder, HyperplaneEncoder, StaticEncoder]


def make(kind: type[Encoder], **options: float) -> Encoder:
    encoder = kind(*SIZES, **options).double()
    stir(encoder, seed=1)  # type: ignore[arg-type]
    return encoder


@pytest.mark.parametrize("kind", ENCODERS)
def test_names(kind: type[Encoder]) -> None:
    assert str(kind(*SIZES)) == f"{kind.__name__}(entity=5, relation=2, time=7, hidden_channels=4)"


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_diachronic_formula(share: float) -> None:
    encoder = make(DiachronicEncoder, temporal_share=share)
    vectors, frequency, phase = (encoder.tables()[name].tolist() for name in ("entity_vectors", "frequency", "phase"))
    assert len(frequency[0]) == 4 * share
    index, time = torch.tensor([0, 4, 4]), torch.tensor([0, 3, 6])
    found = encoder.entity(index, time)
    for row, i, t in zip(found.tolist(), index.tolist(), time.tolist(), strict=True):
        assert row == pytest.approx(diachronic(vectors[i], frequency[i], phase[i], t))
    assert torch.equal(encoder.relation(torch.tensor([1]), time[:1]), encoder.relation_vectors[[1]])


@pytest.mark.parametrize("share", [0.0, -0.5, 1.1])
def test_shares_that_are_none(share: float) -> None:
    with pytest.raises(ValueError, match=r"temporal_share must lie in \(0, 1\]"):
        DiachronicEncoder(*SIZES, temporal_share=share)


def test_projections_lie_on_the_hyperplane() -> None:
    encoder = make(HyperplaneEncoder)
    index, time = torch.tensor([0, 1, 1]), torch.tensor([2, 2, 6])
    normals, tables = encoder.normals[time], (encoder.entity_vectors, encoder.relation_vectors)
    for found, table in zip((encoder.entity(index, time), encoder.relation(index, time)), tables, strict=True):
        assert torch.allclose((found * normals).sum(-1), torch.zeros(3, dtype=torch.double), atol=1e-12)
        for row, i, normal in zip(found.tolist(), index.tolist(), normals.tolist(), strict=True):
            assert row == pytest.approx(hyperplane(table[i].tolist(), normal))


def test_a_static_encoder_ignores_time() -> None:
    encoder = make(StaticEncoder)
    index = torch.arange(5)
    known = encoder.encode_known(index, list(range(7)), [5] * 7)
    assert torch.equal(known.view(7, 5, 4), encoder.entity_vectors.expand(7, 5, 4))
    assert torch.equal(encoder.entity(index, torch.zeros(5, dtype=torch.long)), encoder.entity_vectors)


@pytest.mark.parametrize("kind", ENCODERS)
def test_all_that_is_known_at_some_steps(kind: type[Encoder]) -> None:
    encoder = make(kind)
    order, steps, sizes = torch.tensor([3, 0, 4, 3]), [6, 0, 2, 2], [3, 1, 4, 0]  # repeated, and in no order
    pairs = [(i, step) for step, size in zip(steps, sizes, strict=True) for i in order[:size]]
    one_by_one = torch.stack([encoder.entity(i, torch.tensor(step)) for i, step in pairs])
    known = encoder.encode_known(order, steps, sizes)
    assert torch.allclose(known, one_by_one)
    weights = torch.randn(known.shape, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    tables = [table for name, table in encoder.tables().items() if not name.startswith("relation")]
    wanted = torch.autograd.grad((one_by_one * weights).sum(), tables)
    for gradient, want in zip(torch.autograd.grad((known * weights).sum(), tables), wanted, strict=True):
        assert torch.allclose(gradient, want)
    assert encoder.encode_known(order, [2], [0]).shape == (0, 4)


@pytest.mark.parametrize("kind", ENCODERS)
def test_gradients_hold_the_rows_touched_if_they_are_few(kind: type[Encoder]) -> None:
    encoder = make(kind)
    encoder.expand(num_entities=9)

    def gradients(index: list[int]) -> list[Tensor]:
        found = encoder.entity(torch.tensor(index), torch.tensor(2)).square().sum()
        return list(torch.autograd.grad(found, list(encoder.tables("entity").values())))

    few, many = [1, 3], [1, 3, 1]
    dense = gradients(few)
    encoder.sparse_gradients = True
    for sparse, full in zip(gradients(few), dense, strict=True):
        assert sparse.is_sparse
        assert sparse.coalesce().indices().tolist() == [few]
        assert torch.allclose(sparse.to_dense(), full)
    assert not any(gradient.is_sparse for gradient in gradients(many))


# Initial values and growth -----------------------------------------------------------------------------


def bound(rows: int, width: int) -> float:
    """Glorot's for a uniform distribution, with the gain of a ReLU."""
    return math.sqrt(2) * math.sqrt(6 / (rows + width))


@pytest.mark.parametrize("kind", ENCODERS)
def test_initial_values(kind: type[Encoder]) -> None:
    encoder = kind(500, 300, 200, 8, generator=torch.Generator().manual_seed(3))
    again = kind(500, 300, 200, 8, generator=torch.Generator().manual_seed(3))
    for name, table in encoder.tables().items():
        if name == "normals":
            assert torch.allclose(table.norm(dim=1), torch.ones(len(table)))
            assert torch.equal(table, again.get_parameter(name))
            continue
        limit = bound(*table.shape)
        assert table.abs().max() <= limit
        assert table.abs().max() > 0.95 * limit
        assert table.mean().abs() < 0.1 * limit
        assert table.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.1)
        assert torch.equal(table, again.get_parameter(name))


def test_frequencies_may_have_a_bound_of_their_own() -> None:
    encoder = DiachronicEncoder(500, 300, 200, 8, max_frequency=0.5)
    assert bound(500, 4) < 0.2
    for rows in (encoder.frequency, encoder.frequency[300:]):
        assert 0.45 < rows.abs().max() <= 0.5
        encoder.initialize("entity", torch.arange(300, 500))  # newcomers
    encoder.expand(num_entities=700)
    assert 0.45 < encoder.frequency[500:].abs().max() <= 0.5
    for name in ("entity_vectors", "phase"):
        assert encoder.get_parameter(name).abs().max() <= bound(500, 4)
    for frequency in (0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"max_frequency must lie in \(0, π\] \(got "):
            DiachronicEncoder(*SIZES, max_frequency=frequency)


@pytest.mark.parametrize("kind", ENCODERS)
def test_growth(kind: type[Encoder]) -> None:
    encoder = make(kind)
    before = {name: table.clone() for name, table in encoder.tables().items()}
    encoder.expand(num_entities=50, num_steps=9, generator=torch.Generator().manual_seed(0))
    assert encoder.sizes == {"entity": 50, "relation": 2, "time": 9}
    for name, table in encoder.tables().items():
        old = before[name]
        assert len(table) == encoder.sizes[encoder.axes[name]]
        assert table.dtype == old.dtype
        assert table.requires_grad
        assert torch.equal(table[: len(old)], old)
        new = table[len(old) :]
        assert (new.abs() <= bound(*table.shape)).all()
        assert (new != 0).all()
    assert encoder.entity(torch.tensor([49]), torch.tensor([8])).shape == (1, 4)


def test_growth_on_one_axis_leaves_the_others() -> None:
    encoder = make(HyperplaneEncoder)
    tables = dict(encoder.tables())
    encoder.expand(num_relations=3)
    assert encoder.relation_vectors.shape == (3, 4)
    assert encoder.entity_vectors is tables["entity_vectors"]
    assert encoder.normals is tables["normals"]
    encoder.expand()
    assert encoder.sizes["relation"] == 3
    with pytest.raises(ValueError, match=r"a model cannot shrink: relation rows must be at least 3 \(got 2\)"):
        encoder.expand(num_relations=2)


def test_drawing_some_rows_anew() -> None:
    encoder = make(DiachronicEncoder)
    before = {name: table.clone() for name, table in encoder.tables().items()}
    encoder.initialize("entity", torch.tensor([1, 3]), torch.Generator().manual_seed(0))
    for name, table in encoder.tables().items():
        changed = (table != before[name]).any(1).nonzero().flatten().tolist()
        assert changed == ([1, 3] if encoder.axes[name] == "entity" else [])
