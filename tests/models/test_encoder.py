"""What the encoder of every model must do."""

from __future__ import annotations

import pytest
import torch
from learning import stir

from tkg_incremental.models import ZOO, Encoder, TKGModel

#: Entities, relations, steps, width.
SIZES = (5, 2, 7, 8)
MODELS = [(name, {}) for name in ZOO]
MODELS += [("DE", {"layout": "paper"}), ("DE", {"temporal_share": 1.0}), ("DE", {"decoder": "transe"})]
MODELS += [("CalendarDE", {"temporal_share": 0.25, "first_date": "2014-12-28"})]


@pytest.fixture(params=MODELS, ids=str)
def model(request: pytest.FixtureRequest) -> TKGModel:
    """In double precision, with tables of standard normal numbers."""
    name, options = request.param
    made = ZOO[name](*SIZES, **options).double()
    stir(made, seed=1)
    return made


def test_names(model: TKGModel) -> None:
    assert isinstance(model, Encoder)
    assert model.extra_repr() == "entity=5, relation=2, time=7, hidden_channels=8"


def test_all_that_is_known_at_some_steps(model: TKGModel) -> None:
    """``encode_known`` gives the vectors and gradients of ``entity``."""
    order, steps, sizes = torch.tensor([3, 0, 4, 3]), [6, 0, 2, 2], [3, 1, 4, 0]  # repeated, and in no order
    index = torch.cat([order[:size] for size in sizes])
    time = torch.tensor(steps).repeat_interleave(torch.tensor(sizes))
    expected, found = model.entity(index, time), model.encode_known(order, steps, sizes)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, dtype=found.dtype, generator=torch.Generator().manual_seed(0))
    tables = list(model.parameters())
    wanted = torch.autograd.grad((expected * weights).sum(), tables, allow_unused=True)
    for gradient, want in zip(
        torch.autograd.grad((found * weights).sum(), tables, allow_unused=True), wanted, strict=True
    ):
        assert (gradient is None) == (want is None)
        if want is not None:
            torch.testing.assert_close(gradient, want)
    torch.testing.assert_close(model.encode_known(order, [5], [4]), model.entity(order, torch.tensor(5)))
    assert model.encode_known(order, [2], [0]).shape == (0, SIZES[3])


def test_kernels(model: TKGModel) -> None:
    """Kernels work in single precision."""
    order, steps, sizes = torch.arange(5), [3, 0], [5, 2]
    model = model.float()
    torch.testing.assert_close(model.encode_known(order, steps, sizes), model.encode_steps(order, steps, sizes))


def test_gradients(model: TKGModel) -> None:
    """Of both kinds of vectors by all tables, against differences."""
    index, time = torch.tensor([0, 1, 1]), torch.tensor([2, 2, 6])
    names = list(model.tables())

    def vectors(*tables: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        given = dict(zip(names, tables, strict=True))
        other = model.with_rows_of(lambda name, rows: given[name][rows])
        return other.entity(index, time), other.relation(index, time)

    tables = [table.detach().clone().requires_grad_() for table in model.tables().values()]
    assert torch.autograd.gradcheck(vectors, tables)


def test_growth(model: TKGModel) -> None:
    """Known rows keep their values, and vectors of the new ones can be asked for."""
    before = {name: table.detach().clone() for name, table in model.tables().items()}
    model.expand(50, 3, 9, torch.Generator().manual_seed(0))
    assert model.sizes == {"entity": 50, "relation": 3, "time": 9}
    for name, table in model.tables().items():
        assert len(table) == model.sizes[model.axes[name]]
        assert table.dtype == before[name].dtype
        assert table.requires_grad
        assert torch.equal(table[: len(before[name])], before[name])
        assert (table != 0).all()
    new = torch.tensor([8])
    assert model.entity(torch.tensor([49]), new).shape == (1, SIZES[3])
    assert model.relation(torch.tensor([2]), new).shape == (1, SIZES[3])
    assert model.encode_known(torch.arange(50), [8, 0], [50, 2]).shape == (52, SIZES[3])


def test_few_rows(model: TKGModel) -> None:
    """Gradients hold the rows touched if these are few, and a subset of the entities is encoded alike."""
    model.expand(num_entities=20)
    some, time = torch.tensor([2, 7, 11]), torch.tensor(3)
    places = torch.arange(3)
    subset = model.subset(some)
    torch.testing.assert_close(subset.entity(places, time), model.entity(some, time))
    torch.testing.assert_close(subset.encode_known(places, [3, 1], [3, 2])[:3], model.entity(some, time))

    def gradients(index: torch.Tensor) -> list[torch.Tensor]:
        found = model.entity(index, time).square().sum()
        return list(torch.autograd.grad(found, list(model.tables("entity").values())))

    dense = gradients(some)
    model.sparse_gradients = True
    for sparse, full in zip(gradients(some), dense, strict=True):
        assert sparse.is_sparse
        assert sparse.coalesce().indices().tolist() == [some.tolist()]
        assert torch.allclose(sparse.to_dense(), full)
    assert not any(gradient.is_sparse for gradient in gradients(torch.arange(6)))


def test_the_penalty_has_one_factor_per_product() -> None:
    where = torch.tensor([1]), torch.tensor([2])
    for name, count in (("TComplEx", 1), ("TNTComplEx", 2)):
        model = ZOO[name](*SIZES)
        factors = model.relation_factors(*where)
        assert len(factors) == count
        torch.testing.assert_close(torch.stack(factors).sum(0), model.relation(*where))
