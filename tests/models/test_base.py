import pytest
import torch
from learning import MODELS, small_model
from oracles import ScoreOracle, with_answer
from torch import Tensor

from tkg_incremental.models import DE, ComplEx, HyTE, Static, StaticEncoder, TKGModel
from tkg_incremental.ops.answers import SIDES

ROWS = torch.tensor([(0, 0, 1, 0), (3, 1, 3, 2), (4, 0, 2, 6), (0, 0, 1, 0)])
SIZES = {"num_entities": 5, "num_relations": 2, "num_steps": 7}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> TKGModel:
    return small_model(request.param, **SIZES)


def test_names() -> None:
    sizes = "entity=5, relation=2, time=7, hidden_channels=4"
    assert str(DE(5, 2, 7, 4)) == f"DE(\n  (encoder): DiachronicEncoder({sizes})\n  (decoder): ComplEx()\n)"
    assert str(HyTE(5, 2, 7, 4)) == (
        f"HyTE(\n  (encoder): HyperplaneEncoder({sizes})\n  (decoder): TransE(similarity='l1')\n)"
    )
    assert str(Static(5, 2, 7, 4, decoder="simple")) == (
        f"Static(\n  (encoder): StaticEncoder({sizes})\n  (decoder): SimplE()\n)"
    )


def test_any_encoder_with_any_decoder() -> None:
    model = TKGModel(StaticEncoder(5, 2, 7, 4), ComplEx())
    assert model(ROWS).shape == (4,)
    assert model.device == torch.device("cpu")


def test_decoders_by_name() -> None:
    with pytest.raises(ValueError, match=r"decoder must be one of complex, distmult, simple, transe \(got 'rescal'\)"):
        DE(5, 2, 7, decoder="rescal")


def test_seeds() -> None:
    first, same, other = (DE(5, 2, 7, 4, seed=seed)(ROWS) for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_scores(model: TKGModel) -> None:
    score = ScoreOracle(model)
    assert model(ROWS).tolist() == pytest.approx([score(tuple(row)) for row in ROWS.tolist()])


def test_all_candidates_on_either_side(model: TKGModel) -> None:
    score = ScoreOracle(model)
    for row in ROWS.tolist():
        candidates = model.candidate_vectors(torch.arange(5), row[3])
        for side in SIDES:
            found = model.score_all(torch.tensor([row]), side, candidates)
            wanted = [score(with_answer(tuple(row), side, entity)) for entity in range(5)]
            assert found.squeeze(0).tolist() == pytest.approx(wanted)


def test_both_queries(model: TKGModel) -> None:
    query = model.both_queries(*model.encode(ROWS))
    assert torch.allclose(query, torch.cat([model.query_vectors(ROWS, side) for side in SIDES]))


@pytest.mark.parametrize("samples", [1, 40])  # a few of many, and the entities many times over
def test_what_occurs_is_encoded_once(model: TKGModel, samples: int) -> None:
    order, num_known = torch.tensor([4, 2, 0, 1, 3]), torch.tensor([3, 3, 3, 4, 4, 5, 5])
    times = (ROWS[:, 3], torch.tensor([6, 1]))
    generator = torch.Generator().manual_seed(0)
    places = [(torch.randint(3, (len(time), samples), generator=generator), time) for time in times]
    for asked in (model, model.frozen_copy(), model.frozen_copy()):
        for some in (places[:1], places, places):  # a frozen model remembers
            table, indices = asked.encode_places(some, order, num_known)
            for index, (columns, time) in zip(indices, some, strict=True):
                assert torch.allclose(table.vectors[index.rows], model.encoder.entity(order[columns], time[:, None]))


# Copies ------------------------------------------------------------------------------------------------


def _train(model: TKGModel) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(ROWS).sum().backward()
    optimizer.step()


def test_a_frozen_copy_stays(model: TKGModel) -> None:
    frozen, before = model.frozen_copy(), model(ROWS).detach()
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    _train(model)
    assert not torch.equal(model(ROWS), before)
    assert torch.equal(frozen(ROWS), before)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_frozen_copy_forgets_its_vectors_when_it_is_given_others(model: TKGModel) -> None:
    frozen = model.frozen_copy()
    columns, order = torch.arange(5).repeat(4, 8), torch.arange(5)

    def vectors(of: TKGModel) -> Tensor:
        table, index = of.encode_places([(columns, ROWS[:, 3])], order, torch.full((7,), 5))
        return table.vectors[index[0].rows]

    before = vectors(frozen)
    _train(model)
    assert torch.equal(vectors(frozen), before)
    frozen.load_state_dict(model.state_dict())
    assert torch.equal(vectors(frozen), vectors(model))


def test_a_model_grows(model: TKGModel) -> None:
    before = model(ROWS)
    assert model.expand(num_entities=8, num_relations=3, num_steps=9) is model
    assert torch.equal(model(ROWS), before)
    assert model(torch.tensor([(7, 2, 6, 8)])).isfinite().all()
