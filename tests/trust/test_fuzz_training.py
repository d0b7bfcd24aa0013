"""Whole runs on random graphs, and random queries to a model."""

from __future__ import annotations

import math

import pytest
from fuzzing import attempt, tries
from hypothesis import event, example, given
from hypothesis import strategies as st
from timelines import timelines, to_tensor

from tkg_incremental import IncrementalTrainer, LearningSettings, Result
from tkg_incremental.data import TimeAxis, Timeline
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.models import DE, HyTE, Static, TKGModel
from tkg_incremental.strategies import AGEM, FB, FT, TIE, TR, FBFuture, ReplayOptions, Strategy, Supersede
from tkg_incremental.training import BaseSettings, TrainerSettings


class Given(TKGDataset):
    """A timeline as a dataset."""

    def __init__(self, timeline: Timeline) -> None:
        self._given = timeline
        super().__init__()

    def build(self) -> Graph:
        line = self._given
        names = [f"entity {i}" for i in range(line.num_entities)], [f"relation {i}" for i in range(line.num_relations)]
        return Graph({name: line.split(name).facts for name in ("train", "val", "test")}, *names, line.axis)


STRATEGIES = {
    "FT": lambda: FT(negatives=3),
    "FT all": lambda: FT("all", negatives="all"),
    "TR": lambda: TR(negatives=3, shared=True),
    "TIE": lambda: TIE(negatives=3, replay=ReplayOptions(size=5, negatives=2), window=2),
    "TIE frequency": lambda: TIE(negatives=3, replay=ReplayOptions("frequency", size=5, negatives=2)),
    "TIE inverse shared": lambda: TIE(negatives=3, shared=True, replay=ReplayOptions("inverse", size=5, negatives=2)),
    "TIE boundary": lambda: TIE(negatives=3, replay=ReplayOptions("boundary", size=5, window="all", negatives=2)),
    "A-GEM": lambda: AGEM(replay=ReplayOptions(size=5), window=2),
    "FB": lambda: FB(window=2, negatives=3),
    "FB_future": lambda: FBFuture(),
    "Supersede": lambda: Supersede(replay=ReplayOptions(size=5), window=2, unlikelihood=2.0),
}
MODELS: dict[str, type[TKGModel]] = {"DE": DE, "HyTE": HyTE, "Static": Static}


def train(line: Timeline, model: str, strategy: Strategy, optimizer: str, base: BaseSettings) -> IncrementalTrainer:
    dataset = Given(line)
    settings = TrainerSettings(LearningSettings(epochs=2, batch_size=7, lr=0.01, optimizer=optimizer), base)
    made = MODELS[model].from_dataset(dataset, hidden_channels=4)
    trainer = IncrementalTrainer(
        made,
        dataset,
        strategy,
        settings=settings,
        callbacks=[],
        device="cpu",
    )
    trainer.pretrain()
    trainer.fit()
    return trainer


def check(trainer: IncrementalTrainer) -> None:
    """There is a number for each step with quads to measure it on, and none for the others."""
    line, result = trainer.timeline, trainer.result
    assert [record["time"] for record in result.steps] == list(range(line.base_step, line.num_steps))
    for record in result.steps:
        time = record["time"]
        tested = [len(line.test.at(step)) > 0 for step in range(time + 1)]
        assert sorted(result.alpha[time]) == [step for step, has_quads in enumerate(tested) if has_quads]
        assert math.isnan(record["A@10"]) != any(tested)
        for name in ("C@10", "MRR", "Hits@1", "MR", "raw C@10"):
            assert (name in record) == tested[time]
            assert math.isfinite(record.get(name, 0.0))
    for record in result.history:
        assert all(math.isfinite(value) for name, value in record.items() if not name.startswith("val "))
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
    assert Result.from_dict(result.to_dict()).to_dict() == result.to_dict()


ONE_OF_ALL = ([(0, 0, 0, 0)], [], [(0, 0, 0, 0)])
ONLY_IN_TEST = ([(0, 0, 1, 0), (0, 0, 1, 3)], [], [(2, 0, 3, 3), (4, 1, 0, 4)])
NOTHING = ([], [], [])


@tries(80)
@given(
    timelines().map(lambda drawn: drawn[0]),
    st.sampled_from(list(MODELS)),
    st.sampled_from(list(STRATEGIES)),
    st.sampled_from(["rowwise", "published", "adagrad"]),
    st.builds(
        BaseSettings,
        negatives=st.sampled_from(["all", 3]),
        candidates=st.sampled_from(["own", "last"]),
        visits=st.sampled_from(["auto", None, 1, 3]),
    ),
)
def test_any_graph(line: Timeline, model: str, strategy: str, optimizer: str, base: BaseSettings) -> None:
    event(strategy)
    check(train(line, model, STRATEGIES[strategy](), optimizer, base))


@pytest.mark.parametrize("splits", [ONE_OF_ALL, ONLY_IN_TEST, NOTHING], ids=["one of all", "only in test", "nothing"])
@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("optimizer", ["rowwise", "published"])
def test_nearly_empty_graphs(splits: tuple[list[tuple[int, ...]], ...], steps: int, optimizer: str) -> None:
    rows = [to_tensor([row for row in split if row[3] < steps]) for split in splits]  # type: ignore[misc,arg-type]
    sizes = (1, 1) if splits is ONE_OF_ALL else (5, 2)
    axis = TimeAxis.from_instants(range(steps), "index")
    line = Timeline.from_quads(dict(zip(("train", "val", "test"), rows, strict=True)), *sizes, axis)
    for model in MODELS:
        for name in STRATEGIES:
            check(train(line, model, STRATEGIES[name](), optimizer, BaseSettings()))


# Queries -----------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["entity 0", "relation 0", "Entity 0"])
WHATEVER = st.none() | st.integers(-3, 9) | st.text(max_size=12) | NAMES
Anything = str | int | None


@pytest.fixture(scope="module")
def model() -> TKGModel:
    rows = to_tensor([(0, 0, 1, 0), (2, 0, 3, 2)])
    axis = TimeAxis((1990, 1991, 1995), (1990, 1994, 1999))
    line = Timeline.from_quads({"train": rows, "val": rows[:0], "test": rows[:0]}, 5, 2, axis)
    return DE.from_dataset(Given(line), hidden_channels=4)


@pytest.mark.filterwarnings("ignore:.* is after the last step")
@tries(200)
@given(WHATEVER, WHATEVER, WHATEVER, WHATEVER | st.integers(1985, 2005) | st.dates().map(str), st.integers(-1, 20))
@example("entity 0", "relation 0", None, "1990", 3)
@example("entity 0", "relation 0", None, "٢٠٢١", 3)
@example(0, 0, None, "9" * 5000, 3)
def test_any_query(model: TKGModel, head: Anything, rel: Anything, tail: Anything, time: Anything, k: int) -> None:
    answers, error = attempt(lambda: model.query(head, rel, tail, time, k), KeyError, ValueError)
    if answers is None:
        assert str(error)
    else:
        assert len(answers) <= min(k, 4)  # none, if no entity has been on that side of the relation
        assert all(math.isfinite(answer.score) for answer in answers)
