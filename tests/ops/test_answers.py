import pytest
import torch
from hypothesis import given
from oracles import TimelineOracle
from timelines import make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.ops.answers import SIDES, AnswerIndex, query_columns


def test_by_hand() -> None:
    rows = to_tensor([(0, 0, 2, 1), (0, 0, 1, 1), (0, 0, 1, 1), (0, 0, 1, 0)])
    index = AnswerIndex(rows, "tail", torch.tensor([0, 2, 1]), num_relations=1, num_steps=2)
    assert str(index) == "AnswerIndex(2 tail queries, 3 answers)"
    queries = index.lookup(to_tensor([(0, 0, 0, 1), (1, 0, 0, 1), (0, 0, 0, 0)]))
    assert index.counts[queries].tolist() == [2, 0, 1]
    owner, column = index.expand(queries)
    assert owner.tolist() == [0, 0, 2]
    assert column.tolist() == [1, 2, 2]  # columns, not entities, and ascending


@pytest.mark.parametrize("which", ["train", "all"])
@pytest.mark.parametrize("side", SIDES)
@given(drawn=timelines())
def test_lookup_and_expand(side: str, which: str, drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    # All queries there can be, with and without answers, and one of them twice.
    entities, steps = range(oracle.num_entities), range(oracle.num_steps)
    asked = [(e, r, e, t) for e in entities for r in range(timeline.num_relations) for t in steps]
    asked.append(asked[0])
    index = timeline.answers(side, which)  # type: ignore[arg-type]
    owner, column = index.expand(index.lookup(to_tensor(asked)))
    found: list[list[int]] = [[] for _ in asked]
    for row, entity in zip(owner.tolist(), timeline.order[column].tolist(), strict=True):
        found[row].append(entity)
    for row, entities_found in zip(asked, found, strict=True):
        assert sorted(entities_found) == sorted(oracle.answers(side, which, row))
        columns = [int(timeline.column_of[entity]) for entity in entities_found]
        assert columns == sorted(columns)


def test_an_index_of_nothing() -> None:
    timeline = make_timeline([], num_entities=2, num_relations=1, num_steps=1)
    index = timeline.answers("head")
    queries = index.lookup(to_tensor([(0, 0, 1, 0), (1, 0, 0, 0)]))
    assert index.counts[queries].tolist() == [0, 0]
    assert [len(part) for part in index.expand(queries)] == [0, 0]


def test_an_index_is_made_once() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=1)
    assert timeline.answers("tail") is timeline.answers("tail", "all")


def test_sides() -> None:
    assert query_columns("tail") == (0, 2)
    assert query_columns("head") == (2, 0)
    with pytest.raises(ValueError, match="side must be 'head' or 'tail'"):
        query_columns("object")  # type: ignore[arg-type]
