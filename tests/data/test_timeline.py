import pytest
import torch
from hypothesis import given
from oracles import TimelineOracle, rows_of
from timelines import facts_tensor, make_interval_timeline, make_timeline, timelines, to_tensor

from tkg_incremental.data import TimeAxis, Timeline

SIZES = {"num_entities": 4, "num_relations": 2, "num_steps": 3}


def test_timeline() -> None:
    timeline = make_timeline([(0, 0, 1, 0), (0, 0, 1, 0), (2, 1, 0, 2)], [(1, 0, 0, 1)], **SIZES)
    assert str(timeline) == "Timeline(4 entities, 2 relations, 3 steps, 3 / 1 / 0 rows, 3 / 1 / 0 facts)"
    assert timeline.labels == ["0", "1", "2"]
    assert (len(timeline.train), len(timeline.observed)) == (3, 2)
    assert timeline.split("val") is timeline.val
    assert timeline.to("cpu") is timeline
    assert timeline.first_seen.tolist() == [0, 0, 2, 3]
    assert timeline.num_known.tolist() == [2, 2, 3]
    with pytest.raises(ValueError, match="split must be one of"):
        timeline.split("valid")


@pytest.mark.parametrize(("num_steps", "base"), [(78, 54), (61, 42), (10, 7), (1, 0)])
def test_base_step(num_steps: int, base: int) -> None:
    sizes = {"num_entities": 1, "num_relations": 1}
    assert make_timeline([], **sizes, num_steps=num_steps).base_step == base


def test_intervals() -> None:
    facts = [(0, 0, 1, 0, 2), (0, 0, 1, 1, 2), (2, 1, 0, 2, 2)]
    timeline = make_interval_timeline(facts, **SIZES)
    assert str(timeline) == "Timeline(4 entities, 2 relations, 3 steps, 6 / 0 / 0 rows, 3 / 0 / 0 facts)"
    assert (len(timeline.observed), timeline.observed.num_rows) == (2, 4)
    assert not timeline.is_events


def test_events() -> None:
    assert make_timeline([(0, 0, 1, 0), (0, 0, 1, 1)], **SIZES).is_events
    assert make_timeline([], **SIZES).is_events


@given(timelines())
def test_splits_are_kept_row_by_row(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    for name in ("train", "val", "test"):
        assert rows_of(timeline.split(name).quads()) == sorted(getattr(oracle, name))


@given(timelines())
def test_known_entities(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    entities = range(oracle.num_entities)
    assert timeline.first_seen.tolist() == [oracle.first_seen(entity) for entity in entities]
    train = TimelineOracle(oracle.train, [], [], oracle.num_entities, oracle.num_steps)
    assert timeline.first_observed.tolist() == [train.first_seen(entity) for entity in entities]
    assert sorted(timeline.order.tolist()) == list(entities)
    assert [timeline.column_of.tolist()[entity] for entity in timeline.order.tolist()] == list(entities)
    for step in range(oracle.num_steps):
        known = timeline.known_entities(step).tolist()
        assert len(known) == int(timeline.num_known[step])
        assert set(known) == oracle.known_entities(step)
        # A prefix: known entities keep their columns at later steps.
        assert timeline.order.tolist()[: len(known)] == known


@given(timelines())
def test_with_known_until(drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    for last in range(oracle.num_steps):
        twin = timeline.with_known_until(last)
        for step in range(oracle.num_steps):
            assert set(twin.known_entities(step).tolist()) == oracle.known_entities(max(step, last))
            assert set(timeline.known_entities(step).tolist()) == oracle.known_entities(step)


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("wrong", [-1, 100])
def test_ids_out_of_range(column: int, wrong: int) -> None:
    fact = [0, 0, 0, 0, 0]
    fact[column] = wrong
    name, limit = ("head", "rel", "tail", "first step", "last step")[column], (4, 2, 4, 3, 3)[column]
    expected = rf"{name} of val facts must lie in 0 … {limit - 1} \(got .*{wrong}"
    with pytest.raises(ValueError, match=expected):
        make_interval_timeline([(0, 0, 1, 0, 1)], [(0, 0, 1, 0, 2), tuple(fact)], **SIZES)  # type: ignore[list-item]


def test_reversed_intervals() -> None:
    with pytest.raises(ValueError, match=r"test facts must not end before they begin \(got \[0, 0, 1, 2, 1\]\)"):
        make_interval_timeline([], [], [(0, 0, 1, 0, 1), (0, 0, 1, 2, 1)], **SIZES)


@pytest.mark.parametrize(
    "facts", [torch.zeros(2, 4, dtype=torch.long), torch.zeros(2, 5), torch.zeros(5, dtype=torch.long)]
)
def test_facts_of_the_wrong_kind(facts: torch.Tensor) -> None:
    splits = {"train": facts, "val": facts_tensor([]), "test": facts_tensor([])}
    with pytest.raises(ValueError, match=r"train facts must be a LongTensor \[F, 5\]"):
        Timeline(splits, 1, 1, TimeAxis((0,), (0,), "index"))
    splits = {"train": to_tensor([]), "val": facts_tensor([]), "test": to_tensor([])}
    with pytest.raises(ValueError, match=r"val quads must be a LongTensor \[N, 4\]"):
        Timeline.from_quads(splits, 1, 1, TimeAxis((0,), (0,), "index"))
