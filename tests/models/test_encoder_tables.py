import math

import pytest
import torch
from learning import stir
from oracles.scores import hyperplane

from tkg_incremental.models import DE, Encoder, HyTE, Static, TKGModel

SIZES = (5, 2, 7, 4)
MODELS: list[type[TKGModel]] = [DE, HyTE, Static]


def make(kind: type[TKGModel]) -> TKGModel:
    model = kind(*SIZES).double()  # type: ignore[call-arg]
    stir(model, seed=1)
    return model


def test_projections_lie_on_the_hyperplane() -> None:
    model = make(HyTE)
    index, time = torch.tensor([0, 1, 1]), torch.tensor([2, 2, 6])
    normals, tables = model.normals[time], (model.entity_vectors, model.relation_vectors)
    for found, table in zip((model.entity(index, time), model.relation(index, time)), tables, strict=True):
        assert torch.allclose((found * normals).sum(-1), torch.zeros(3, dtype=torch.double), atol=1e-12)
        for row, i, normal in zip(found.tolist(), index.tolist(), normals.tolist(), strict=True):
            assert row == pytest.approx(hyperplane(table[i].tolist(), normal))


def test_a_static_model_ignores_time() -> None:
    model = make(Static)
    index = torch.arange(5)
    known = model.encode_known(index, list(range(7)), [5] * 7)
    assert torch.equal(known.view(7, 5, 4), model.entity_vectors.expand(7, 5, 4))
    assert torch.equal(model.entity(index, torch.zeros(5, dtype=torch.long)), model.entity_vectors)


# Initial values and growth -----------------------------------------------------------------------------


def bound(rows: int, width: int) -> float:
    """Glorot's for a uniform distribution, with the gain of a ReLU."""
    return math.sqrt(2) * math.sqrt(6 / (rows + width))


@pytest.mark.parametrize("kind", MODELS)
def test_initial_values(kind: type[TKGModel]) -> None:
    model, again = (kind(500, 300, 200, 8, seed=3) for _ in range(2))  # type: ignore[call-arg, arg-type]
    for name, table in model.tables().items():
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
    model = DE(500, 300, 200, 8, max_frequency=0.5)
    assert bound(500, 4) < 0.2
    for rows in (model.frequency, model.frequency[300:]):
        assert 0.45 < rows.abs().max() <= 0.5
        model.initialize("entity", torch.arange(300, 500))  # new entities
    model.expand(num_entities=700)
    assert 0.45 < model.frequency[500:].abs().max() <= 0.5
    for name in ("entity_vectors", "phase"):
        assert model.get_parameter(name).abs().max() <= bound(500, 4)
    for frequency in (0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"max_frequency must lie in \(0, π\] \(got "):
            DE(*SIZES, max_frequency=frequency)


def test_growth_on_one_axis_leaves_the_others() -> None:
    model = make(HyTE)
    tables = dict(model.tables())
    model.expand(num_relations=3)
    assert model.relation_vectors.shape == (3, 4)
    assert model.entity_vectors is tables["entity_vectors"]
    assert model.normals is tables["normals"]
    model.expand()
    assert model.sizes["relation"] == 3
    with pytest.raises(ValueError, match=r"a model cannot shrink: relation rows must be at least 3 \(got 2\)"):
        model.expand(num_relations=2)


def test_new_steps_start_as_the_last_one() -> None:
    for kind, is_copy in (
        (Encoder, True),
        (type("Drawn", (Encoder,), {"copies_last_step": False}), False),
    ):
        tables = kind(2, 2, 3, 4)
        tables.add_table("steps", "time", 4)
        tables.reset_parameters(seed=1)
        tables.expand_tables({"time": 5})
        assert torch.equal(tables.steps[3], tables.steps[2]) == is_copy
        assert torch.equal(tables.steps[4], tables.steps[2]) == is_copy


def test_drawing_some_rows_anew() -> None:
    model = make(DE)
    before = {name: table.clone() for name, table in model.tables().items()}
    model.initialize("entity", torch.tensor([1, 3]), torch.Generator().manual_seed(0))
    for name, table in model.tables().items():
        changed = (table != before[name]).any(1).nonzero().flatten().tolist()
        assert changed == ([1, 3] if model.axes[name] == "entity" else [])
