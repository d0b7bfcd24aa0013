"""Timelines that grow step by step, compared with timelines that are built from scratch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Row, TimelineOracle, Triple
from timelines import make_interval_timeline, make_timeline, timelines
from torch import Tensor

from tkg_incremental.data import TimeAxis, Timeline
from tkg_incremental.ops.answers import SIDES


def triples_tensor(triples: list[Triple]) -> Tensor:
    return torch.tensor(triples, dtype=torch.long).view(-1, 3)


def grown(rows: list[Row], begin: list[Triple], end: list[Triple], step: int) -> list[Row]:
    """Rows of a split after one more step, by definition."""
    last = [row[:3] for row in rows if row[3] == step - 1]
    goes_on = [triple for triple in last if triple not in end or triple in begin]
    return rows + [(*triple, step) for triple in [*goes_on, *sorted(set(begin) - set(last))]]


def check_equal(found: Timeline, expected: Timeline) -> None:
    assert found.num_steps == expected.num_steps
    for name in ("train", "val", "test"):
        assert torch.equal(found.split(name).quads(), expected.split(name).quads())
        assert found.split(name).num_rows == expected.split(name).num_rows
    assert torch.equal(found.first_seen, expected.first_seen)
    assert torch.equal(found.first_observed, expected.first_observed)
    assert torch.equal(found.order, expected.order)
    assert torch.equal(found.num_known, expected.num_known)
    for one, other in ((found.observed, expected.observed), (found.truth, expected.truth)):
        assert torch.equal(one.facts, other.facts)
        for step in range(found.num_steps):
            assert torch.equal(one.at(step), other.at(step))
            assert one.num_at(step) == other.num_at(step)
            assert torch.equal(one.added(step), other.added(step))
            assert torch.equal(one.removed(step), other.removed(step))
            assert torch.equal(one.deleted(step, 3), other.deleted(step, 3))
            assert torch.equal(one.boundary_facts(step - 3, step - 1), other.boundary_facts(step - 3, step - 1))
            assert torch.equal(one.between(step - 2, step).quads(), other.between(step - 2, step).quads())
    entities = torch.arange(found.num_entities)
    queries = torch.cartesian_prod(entities, torch.arange(found.num_relations), torch.arange(found.num_steps))
    quads = torch.stack([queries[:, 0], queries[:, 1], queries[:, 0], queries[:, 2]], dim=1)
    candidates = entities.expand(len(quads), -1)
    for side in SIDES:
        for which in ("train", "all"):
            one, other = (timeline.answers(side, which) for timeline in (found, expected))  # type: ignore[arg-type]
            assert all(map(torch.equal, one.expand(quads), other.expand(quads)))
            assert torch.equal(one.contains(quads, candidates), other.contains(quads, candidates))


@settings(max_examples=60)
@given(timelines(), st.data())
def test_growing_equals_building(drawn: tuple[Timeline, TimelineOracle], data: st.DataObject) -> None:
    timeline, oracle = drawn
    entities, relations, steps = timeline.num_entities, timeline.num_relations, timeline.num_steps
    train, val, test = oracle.train, oracle.val, oracle.test
    if data.draw(st.booleans()):  # with everything cached before
        check_equal(timeline, timeline)
    for _ in range(data.draw(st.integers(1, 4))):
        entities, relations = entities + data.draw(st.integers(0, 3)), relations + data.draw(st.integers(0, 1))
        triple = st.tuples(*(st.integers(0, size - 1) for size in (entities, relations, entities)))
        holding = sorted({row[:3] for row in (*train, *val, *test) if row[3] == steps - 1})
        some = st.one_of(triple, st.sampled_from(holding)) if holding else triple
        begin, end = (data.draw(st.lists(some, max_size=5)) for _ in range(2))
        timeline.extend(triples_tensor(begin), triples_tensor(end), entities, relations)
        train, val, test = grown(train, begin, end, steps), *(grown(rows, [], end, steps) for rows in (val, test))
        steps += 1
        sizes = {"num_entities": entities, "num_relations": relations, "num_steps": steps}
        check_equal(timeline, make_timeline(train, val, test, **sizes))


def test_a_step_without_changes_writes_nothing() -> None:
    facts = [(e, 0, e + 1, e, 9) for e in range(8)]
    timeline = make_interval_timeline(facts, num_entities=9, num_relations=1, num_steps=10)
    none = triples_tensor([])
    timeline.extend(none, none)
    buffer = timeline.train._facts.data_ptr()
    for _ in range(100):
        timeline.extend(none, none)
    assert timeline.train._facts.data_ptr() == buffer
    assert timeline.num_steps == 111
    assert timeline.train.num_at(110) == 8
    assert len(timeline.train.added(110)) == 0


def test_labels_and_mistakes() -> None:
    timeline = make_timeline([(0, 0, 1, 0)], num_entities=2, num_relations=1, num_steps=1)
    none = triples_tensor([])
    with pytest.raises(ValueError, match=r"tail of begin must lie in 0 … 1 \(got 2 … 2\)"):
        timeline.extend(triples_tensor([(0, 0, 2)]), none)
    with pytest.raises(ValueError, match=r"end must be a LongTensor \[n, 3\]"):
        timeline.extend(none, none[:, :2])
    with pytest.raises(ValueError, match="must not decrease"):
        timeline.extend(none, none, num_entities=1)
    with pytest.raises(ValueError, match=r"axis must have 2 steps \(got 1\)"):
        timeline.extend(none, none, axis=timeline.axis)
    assert timeline.num_steps == 1
    timeline.extend(triples_tensor([(1, 0, 0)]), triples_tensor([(0, 0, 1)]))
    assert timeline.labels == ["0", "1"]
    assert timeline.observed.removed(1).tolist() == [[0, 0, 1, 0]]
    timeline.extend(none, none, axis=TimeAxis((0, 1, 5), (0, 1, 9), "index"))
    assert timeline.labels[2] == "5–9"
