import pytest
import torch
from oracles import ScoreOracle, with_answer

from tkg_incremental.data import TimeAxis
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.models import DE, Answer, HyTE, Static, TKGModel

NAMES = ["United States", "France", "Obama", "Trump", "Biden"]
US, FRANCE, OBAMA, TRUMP, BIDEN = range(5)
RELATIONS = ["president of", "lives in"]


class Presidents(TKGDataset):
    """Four steps; Biden is known from the last one on."""

    def build(self) -> Graph:
        train = [(OBAMA, 0, US, 0), (OBAMA, 1, FRANCE, 0), (TRUMP, 0, US, 1), (TRUMP, 0, US, 2), (BIDEN, 0, US, 3)]
        rows = one_step_facts(torch.tensor(train))
        axis = TimeAxis((2016, 2017, 2019, 2021), (2016, 2018, 2020, 2024), "year")
        return Graph({"train": rows, "val": rows[:0], "test": rows[:0]}, NAMES, RELATIONS, axis)


@pytest.fixture(scope="module")
def dataset() -> Presidents:
    return Presidents()


@pytest.fixture(params=[DE, HyTE, Static])
def model(request: pytest.FixtureRequest, dataset: Presidents) -> TKGModel:
    return request.param.from_dataset(dataset, hidden_channels=8).double()


def test_from_dataset(dataset: Presidents) -> None:
    model = DE.from_dataset(dataset, hidden_channels=8, decoder="distmult", seed=3)
    assert isinstance(model, DE)
    assert model.encoder.sizes == {"entity": 5, "relation": 2, "time": 4}
    assert (model.encoder.hidden_channels, type(model.decoder).__name__) == (8, "DistMult")
    assert model.catalog is not None
    assert model.catalog.entities.names == NAMES
    quads = dataset.timeline.train.quads()
    assert torch.equal(model(quads), DE(5, 2, 4, 8, "distmult", seed=3)(quads))
    assert DE.from_dataset(dataset).encoder.hidden_channels == 128


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize(("time", "step", "known"), [("2016", 0, 3), ("2018-05-01", 1, 4), (2024, 3, 5)])
def test_answers(model: TKGModel, side: str, time: str | int, step: int, known: int) -> None:
    given = {"head": None, "tail": "United States"} if side == "head" else {"head": "United States", "tail": None}
    answers = model.query(rel="president of", time=time, k=10, **given)
    score = ScoreOracle(model)
    candidates = [US, FRANCE, OBAMA, TRUMP, BIDEN][:known]
    wanted = sorted(((score(with_answer((US, 0, US, step), side, e)), NAMES[e]) for e in candidates), reverse=True)
    assert [answer.name for answer in answers] == [name for _, name in wanted]
    assert [answer.score for answer in answers] == pytest.approx([value for value, _ in wanted])
    assert isinstance(answers[0], Answer)
    best = model.query(rel="president of", time=time, k=1, **given)
    assert best == answers[:1]


def test_names_and_ids_are_the_same(model: TKGModel) -> None:
    by_name = model.query(None, "president of", "United States", "2021")
    assert model.query(None, 0, US, 2021) == by_name
    assert len(by_name) == 5


def test_questions_that_are_none(model: TKGModel) -> None:
    with pytest.raises(ValueError, match="exactly one of head and tail must be None .got head=None, tail=None."):
        model.query(rel=0, time=2020)
    with pytest.raises(ValueError, match="exactly one of head and tail must be None .got head='Biden', tail=0."):
        model.query("Biden", 0, 0, 2020)
    with pytest.raises(ValueError, match="rel and time must be given .got rel=None, time=2020."):
        model.query("Biden", time=2020)
    with pytest.raises(ValueError, match="rel and time must be given"):
        model.query("Biden", 0)
    with pytest.raises(ValueError, match=r"k must be at least 1 \(got 0\)"):
        model.query("Biden", 0, time=2020, k=0)
    with pytest.raises(ValueError, match="time must lie in 2016 … 2024 .got 2030."):
        model.query("Biden", 0, time=2030)


def test_names_that_nobody_has(model: TKGModel) -> None:
    with pytest.raises(KeyError, match="no entity is called 'Bidden'; the nearest are 'Biden'"):
        model.query("Bidden", 0, time=2020)
    with pytest.raises(KeyError, match="no relation is called 'President Of'; the nearest are 'president of'"):
        model.query("Biden", "President Of", time=2020)
    with pytest.raises(KeyError, match=r"entity id must lie in 0 … 4 \(got 5\)"):
        model.query(5, 0, time=2020)


def test_a_model_without_names() -> None:
    with pytest.raises(RuntimeError, match="no catalog of names"):
        DE(5, 2, 4, 8).query(0, 0, time=0)


def test_asking_does_not_build_a_graph(model: TKGModel) -> None:
    model.query("Biden", 0, time=2021)
    assert all(parameter.grad is None for parameter in model.parameters())
