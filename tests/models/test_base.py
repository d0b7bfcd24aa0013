import inspect

import pytest
import torch
from learning import MODELS, small_model
from oracles import ScoreOracle, with_answer

from tkg_incremental.models import DE, HyTE, Static, TKGModel, TransE
from tkg_incremental.ops.answers import SIDES

ROWS = torch.tensor([(0, 0, 1, 0), (3, 1, 3, 2), (4, 0, 2, 6), (0, 0, 1, 0)])
SIZES = {"num_entities": 5, "num_relations": 2, "num_steps": 7}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> TKGModel:
    return small_model(request.param, **SIZES)


def test_names() -> None:
    sizes = "entity=5, relation=2, time=7, hidden_channels=4"
    assert str(DE(5, 2, 7, 4)) == f"DE(\n  {sizes}\n  (decoder): ComplEx()\n)"
    assert str(HyTE(5, 2, 7, 4)) == f"HyTE(\n  {sizes}\n  (decoder): TransE(similarity='l1')\n)"
    assert str(Static(5, 2, 7, 4, decoder="simple")) == f"Static(\n  {sizes}\n  (decoder): SimplE()\n)"


class Own(TKGModel):
    def __init__(self, num_entities: int, num_relations: int, num_steps: int, width: int = 4, p: int = 1) -> None:
        super().__init__(num_entities, num_relations, num_steps, width, TransE(p))
        self.add_table("entity_vectors", "entity", width)
        self.add_table("relation_vectors", "relation", width)
        self.reset_parameters()


class Wider(Own):
    def __init__(self, num_entities: int, num_relations: int, num_steps: int, factor: int = 2) -> None:
        super().__init__(num_entities, num_relations, num_steps, 4 * factor)


def test_a_model_of_ones_own() -> None:
    model = Own(5, 2, 7)
    assert model(ROWS).shape == (4,)
    assert model.device == torch.device("cpu")


def test_options_are_the_arguments_of_the_outermost_constructor() -> None:
    assert Own(5, 2, 7, p=2).options == {"width": 4, "p": 2}
    assert Own(5, 2, 7, 6).frozen_copy().options == {"width": 6, "p": 1}
    assert Wider(5, 2, num_steps=7).options == {"factor": 2}
    assert list(inspect.signature(DE).parameters)[:5] == [
        *("num_entities", "num_relations", "num_steps", "hidden_channels", "decoder")
    ]


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
    head, tail = (model.entity(ROWS[:, column], ROWS[:, 3]) for column in (0, 2))
    query = model.both_queries(head, tail, ROWS, model.encode_relation(ROWS[:, 1], ROWS[:, 3], "tail"))
    assert torch.allclose(query, torch.cat([model.query_vectors(ROWS, side) for side in SIDES]))


def test_reciprocal_relations() -> None:
    """A head query is a tail query of the inverse relation, in row 2r + 1; a quad has the mean of both scores."""
    plain = small_model("DE complex", 5, 4, 7)
    model = DE(5, 2, 7, plain.hidden_channels, reciprocal=True).double()
    model.load_state_dict(plain.state_dict())
    assert model.relation_rows(torch.tensor([0, 1]), "tail").tolist() == [0, 2]
    assert model.relation_rows(torch.tensor([0, 1]), "head").tolist() == [1, 3]
    head, rel, tail, time = ROWS.unbind(1)
    there = plain(torch.stack([head, 2 * rel, tail, time], 1))
    back = plain(torch.stack([tail, 2 * rel + 1, head, time], 1))
    torch.testing.assert_close(model(ROWS), (there + back) / 2)
    vectors = model.entity(torch.arange(5), torch.tensor(2))
    for side, other in (
        ("tail", torch.stack([head, 2 * rel, tail, time], 1)),
        ("head", torch.stack([tail, 2 * rel + 1, head, time], 1)),
    ):
        found = model.score_all(ROWS, side, vectors)  # type: ignore[arg-type]
        torch.testing.assert_close(found, plain.score_all(other, "tail", vectors))
    model.expand(num_relations=3)
    assert model.sizes["relation"] == 6


@pytest.mark.parametrize("frozen", [False, True])
def test_vectors_of_a_pool(model: TKGModel, frozen: bool) -> None:
    order = torch.tensor([4, 2, 0, 1, 3])
    asked = model.frozen_copy() if frozen else model
    for steps, sizes in (([2], [3]), ([0, 2, 6], [2, 3, 5]), ([6, 0], [5, 2]), ([2], [5])):  # a frozen model remembers
        vectors, begins = asked.encode_pool(order, steps, sizes)
        for step, size, begin in zip(steps, sizes, begins, strict=True):
            wanted = model.entity(order[:size], torch.full((size,), step))
            assert torch.allclose(vectors[begin : begin + size], wanted)


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


def test_a_frozen_copy_with_other_weights(model: TKGModel) -> None:
    """Vectors that were kept are dropped when other weights are loaded."""
    frozen, order = model.frozen_copy(), torch.arange(5)
    before = frozen.encode_pool(order, [1, 2], [5, 4])[0].clone()
    _train(model)
    assert torch.equal(frozen.encode_pool(order, [1, 2], [5, 4])[0], before)
    frozen.load_state_dict(model.state_dict())
    assert torch.equal(frozen.encode_pool(order, [1, 2], [5, 4])[0], model.encode_pool(order, [1, 2], [5, 4])[0])


def test_a_frozen_copy_is_in_evaluation_mode(model: TKGModel) -> None:
    model.train()
    assert not any(module.training for module in model.frozen_copy().modules())
    assert model.training


def test_a_model_grows(model: TKGModel) -> None:
    before = model(ROWS)
    assert model.expand(num_entities=8, num_relations=3, num_steps=9) is model
    assert torch.equal(model(ROWS), before)
    assert model(torch.tensor([(7, 2, 6, 8)])).isfinite().all()
