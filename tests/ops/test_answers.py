import pytest
import torch
from hypothesis import given
from oracles import TimelineOracle
from timelines import facts_tensor, make_timeline, timelines, to_tensor

from tkg_incremental.data import Timeline
from tkg_incremental.ops import answers
from tkg_incremental.ops.answers import SIDES, AnswerIndex, query_columns


def test_by_hand() -> None:
    facts = facts_tensor([(0, 0, 2, 1, 3), (0, 0, 1, 4, 4), (0, 0, 1, 0, 1), (1, 0, 2, 0, 9)])
    index = AnswerIndex(facts, "tail", num_entities=3, num_relations=1)
    assert str(index) == "AnswerIndex(tail, 4 entries)"
    assert (index.entity.tolist(), index.first.tolist(), index.last.tolist()) == (
        [1, 1, 2, 2],
        [0, 4, 1, 0],
        [1, 4, 3, 9],
    )
    quads = to_tensor([(0, 0, 0, 1), (2, 0, 0, 1), (0, 0, 0, 4), (1, 0, 0, 30)])
    start, count = index.spans(quads)
    assert count.tolist() == [3, 0, 3, 1]
    assert start.tolist()[::2] == [0, 0]
    assert [part.tolist() for part in index.expand(quads)] == [[0, 0, 2], [1, 2, 1]]
    assert index.counts(quads).tolist() == [2, 0, 1, 0]
    assert index.has_answers(quads).tolist() == [True, False, True, False]
    assert index.contains(quads, torch.tensor([[0, 1, 2]] * 4)).int().tolist() == [
        [0, 1, 1],
        [0, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("entries_at_once", [1, 5, 1 << 22])
@pytest.mark.parametrize("which", ["train", "all"])
@pytest.mark.parametrize("side", SIDES)
@given(drawn=timelines())
def test_answers(side: str, which: str, entries_at_once: int, drawn: tuple[Timeline, TimelineOracle]) -> None:
    timeline, oracle = drawn
    # All possible queries, with and without answers, and one of them twice.
    entities, steps = range(oracle.num_entities), range(oracle.num_steps)
    asked = [(e, r, e, t) for e in entities for r in range(timeline.num_relations) for t in steps]
    asked.append(asked[0])
    quads = to_tensor(asked)
    index = timeline.answers(side, which)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "_ENTRIES_AT_ONCE", entries_at_once)
        row, entity = index.expand(quads)
    found: list[list[int]] = [[] for _ in asked]
    for i, answer in zip(row.tolist(), entity.tolist(), strict=True):
        found[i].append(answer)
    expected = [sorted(oracle.answers(side, which, query)) for query in asked]
    assert found == expected
    assert row.tolist() == sorted(row.tolist())
    assert index.counts(quads).tolist() == [len(each) for each in expected]
    candidates = torch.arange(oracle.num_entities).expand(len(asked), -1)
    assert index.contains(quads, candidates).tolist() == [[e in each for e in entities] for each in expected]


def test_ids_too_large_for_one_key_with_time() -> None:
    big = 10**8
    facts = facts_tensor([(big - 1, 99, big - 2, 5, 6), (big - 1, 99, big - 2, 900, 901), (3, 99, big - 3, 900, 999)])
    index = AnswerIndex(facts, "tail", num_entities=big, num_relations=100)
    quads = to_tensor([(big - 1, 99, 0, time) for time in (4, 5, 6, 7, 899, 900, 902)])
    candidates = torch.tensor([[big - 2, big - 1, 0]]).expand(7, 3)
    assert index.contains(quads, candidates)[:, 0].int().tolist() == [0, 1, 1, 0, 0, 1, 0]
    assert not index.contains(quads, candidates)[:, 1:].any()
    with pytest.raises(OverflowError, match="the graph is too large"):
        AnswerIndex(facts, "tail", num_entities=2**32, num_relations=100)


def test_an_empty_index() -> None:
    timeline = make_timeline([], num_entities=2, num_relations=1, num_steps=1)
    index = timeline.answers("head")
    quads = to_tensor([(0, 0, 1, 0), (1, 0, 0, 0)])
    assert index.counts(quads).tolist() == [0, 0]
    assert [len(part) for part in index.expand(quads)] == [0, 0]
    assert not index.contains(quads, torch.zeros(2, 3, dtype=torch.long)).any()
    assert [len(part) for part in index.expand(quads[:0])] == [0, 0]


def test_an_index_is_made_once() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=1)
    assert timeline.answers("tail") is timeline.answers("tail", "all")
    assert timeline.answers("tail").to("cpu") is timeline.answers("tail")
    with pytest.raises(ValueError, match="which must be 'train' or 'all'"):
        timeline.answers("tail", "test")  # type: ignore[arg-type]


def test_sides() -> None:
    assert query_columns("tail") == (0, 2)
    assert query_columns("head") == (2, 0)
    with pytest.raises(ValueError, match="side must be 'head' or 'tail'"):
        query_columns("object")  # type: ignore[arg-type]
