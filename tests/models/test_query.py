import warnings

import pytest
import torch
from oracles import ScoreOracle, with_answer

from tkg_incremental.answers import Answer
from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.models import DE, HyTE, Static, TKGModel

NAMES = ["United States", "France", "Obama", "Trump", "Biden"]
US, FRANCE, OBAMA, TRUMP, BIDEN = range(5)
RELATIONS = ["president of", "lives in"]
FACTS = [(OBAMA, 0, US, 0, 0), (OBAMA, 1, FRANCE, 0, 0), (TRUMP, 0, US, 1, 2), (BIDEN, 0, US, 3, 3)]


class Presidents(TKGDataset):
    """Four steps."""

    def build(self) -> Graph:
        facts = torch.tensor(FACTS)
        axis = TimeAxis((2016, 2017, 2019, 2021), (2016, 2018, 2020, 2024), "year")
        return Graph({"train": facts, "val": facts[:0], "test": facts[:0]}, NAMES, RELATIONS, axis)


@pytest.fixture(scope="module")
def dataset() -> Presidents:
    return Presidents()


@pytest.fixture(params=[DE, HyTE, Static])
def model(request: pytest.FixtureRequest, dataset: Presidents) -> TKGModel:
    return request.param.from_dataset(dataset, hidden_channels=8).double()


def test_from_dataset(dataset: Presidents) -> None:
    model = DE.from_dataset(dataset, hidden_channels=8, decoder="distmult", seed=3)
    assert isinstance(model, DE)
    assert model.sizes == {"entity": 5, "relation": 2, "time": 4}
    assert (model.hidden_channels, model.decoder.name) == (8, "DistMult")
    assert model.catalog is not None
    assert model.catalog.entities.names == NAMES
    assert sorted(map(tuple, model.catalog.facts.tolist())) == sorted(FACTS)
    quads = torch.tensor([(OBAMA, 0, US, 0), (TRUMP, 0, US, 2)])
    assert torch.equal(model(quads), DE(5, 2, 4, 8, "distmult", seed=3)(quads))
    assert DE.from_dataset(dataset).hidden_channels == 128


@pytest.mark.parametrize("any_type", [False, True])
@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize(
    ("time", "step", "president"), [("2016", 0, OBAMA), ("2018-05-01", 1, TRUMP), (2024, 3, BIDEN)]
)
def test_answers(model: TKGModel, side: str, time: str | int, step: int, president: int, any_type: bool) -> None:
    given = {"head": None, "tail": US} if side == "head" else {"head": president, "tail": None}
    answers = model.query(rel="president of", time=time, k=10, any_type=any_type, **given)
    score = ScoreOracle(model)
    candidates = range(5) if any_type else [OBAMA, TRUMP, BIDEN] if side == "head" else [US]
    right = president if side == "head" else US
    quad = (president, 0, US, step)
    wanted = sorted(candidates, key=lambda e: (e != right, -score(with_answer(quad, side, e))))
    assert [answer.name for answer in answers] == [NAMES[e] for e in wanted]
    assert [answer.score for answer in answers] == pytest.approx([score(with_answer(quad, side, e)) for e in wanted])
    assert [answer.known is not None for answer in answers] == [e == right for e in wanted]
    assert isinstance(answers[0], Answer)
    assert model.query(rel="president of", time=time, k=1, any_type=any_type, **given) == answers[:1]


def test_names_and_ids_are_the_same(model: TKGModel) -> None:
    by_name = model.query(None, "president of", "United States", "2021")
    assert model.query(None, 0, US, 2021) == by_name
    assert by_name[0].known == ("2021–2024", None)


def test_questions_that_are_none(model: TKGModel) -> None:
    with pytest.raises(ValueError, match="exactly one of head, rel and tail must be None .got None, "):
        model.query(rel=0, time=2020)
    with pytest.raises(ValueError, match="exactly one of head, rel and tail must be None .got 'Biden', "):
        model.query("Biden", 0, 0, 2020)
    with pytest.raises(ValueError, match="exactly one of head, rel and tail must be None .got 'Biden', None and None"):
        model.query("Biden", time=2020)
    with pytest.raises(ValueError, match="time must be given .got None."):
        model.query("Biden", 0)
    with pytest.raises(ValueError, match=r"k must be at least 1 \(got 0\)"):
        model.query("Biden", 0, time=2020, k=0)
    with pytest.raises(ValueError, match="time must lie in 2016 … 2024 .got '2015'."):
        model.query("Biden", 0, time=2015)


def test_a_time_after_the_last_step_is_answered_as_of_that_step(model: TKGModel) -> None:
    with pytest.warns(UserWarning, match="2030 is after the last step the model learnt: answered as of 2021–2024"):
        late = model.query(None, 0, US, 2030)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.query(None, 0, US, 2024) == late


def test_names_that_do_not_exist(model: TKGModel) -> None:
    with pytest.raises(KeyError, match="no entity is called 'Bidden'; the nearest are 'Biden'"):
        model.query("Bidden", 0, time=2020)
    with pytest.raises(KeyError, match="no relation is called 'Presidents Of'; the nearest are 'president of'"):
        model.query("Biden", "Presidents Of", time=2020)
    with pytest.raises(KeyError, match=r"entity id must lie in 0 … 4 \(got 5\)"):
        model.query(5, 0, time=2020)


def test_a_model_without_names() -> None:
    with pytest.raises(RuntimeError, match="no catalog of names"):
        DE(5, 2, 4, 8).query(0, 0, time=0)


def test_check_timeline_and_relations(model: TKGModel) -> None:
    assert model.check("Trump", "president of", "United States", 2019).known == ("2017–2018", "2019–2020")
    assert model.check("Trump", "president of", "United States", 2016).known is None
    assert [point.known for point in model.timeline("Trump", 0, US)] == [False, True, True, False]
    assert [(a.name, a.known is not None) for a in model.query("Trump", None, US, 2018)] == [("president of", True)]
    assert model.query("Trump", None, "France", 2018) == []


def test_asking_does_not_build_a_graph(model: TKGModel) -> None:
    model.query("Biden", 0, time=2021)
    assert all(parameter.grad is None for parameter in model.parameters())
