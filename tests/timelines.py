"""Random small timelines for property tests."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from oracles import Fact, Row, TimelineOracle, expand
from torch import Tensor

from tkg_incremental.data import TimeAxis, Timeline


def to_tensor(rows: list[Row]) -> Tensor:
    return torch.tensor(rows, dtype=torch.long).view(-1, 4)


def facts_tensor(facts: list[Fact]) -> Tensor:
    return torch.tensor(facts, dtype=torch.long).view(-1, 5)


def make_timeline(
    train: list[Row],
    val: list[Row] | None = None,
    test: list[Row] | None = None,
    *,
    num_entities: int,
    num_relations: int,
    num_steps: int,
) -> Timeline:
    """A timeline from rows (head, rel, tail, time)."""
    splits = {"train": to_tensor(train), "val": to_tensor(val or []), "test": to_tensor(test or [])}
    axis = TimeAxis.from_instants(range(num_steps), "index")
    return Timeline.from_quads(splits, num_entities, num_relations, axis)


def make_interval_timeline(
    train: list[Fact],
    val: list[Fact] | None = None,
    test: list[Fact] | None = None,
    *,
    num_entities: int,
    num_relations: int,
    num_steps: int,
) -> Timeline:
    """A timeline from facts (head, rel, tail, first, last)."""
    splits = {"train": facts_tensor(train), "val": facts_tensor(val or []), "test": facts_tensor(test or [])}
    axis = TimeAxis.from_instants(range(num_steps), "index")
    return Timeline(splits, num_entities, num_relations, axis)


@st.composite
def timelines(draw: st.DrawFn) -> tuple[Timeline, TimelineOracle]:
    """A timeline and its oracle, from rows or from intervals. Few ids give repeated rows, overlapping and touching
    intervals, one entity or relation, and empty steps; splits may be empty and share rows."""
    num_entities, num_relations, num_steps = (draw(st.integers(1, limit)) for limit in (6, 3, 7))
    triple = [st.integers(0, size - 1) for size in (num_entities, num_relations, num_entities)]
    step = st.integers(0, num_steps - 1)
    sizes = {"num_entities": num_entities, "num_relations": num_relations, "num_steps": num_steps}
    if draw(st.booleans()):
        row = st.tuples(*triple, step)
        train, val, test = (draw(st.lists(row, max_size=size)) for size in (40, 8, 8))
        return make_timeline(train, val, test, **sizes), TimelineOracle(train, val, test, num_entities, num_steps)
    interval = st.tuples(step, step).map(sorted)
    fact = st.tuples(*triple, interval).map(lambda drawn: (*drawn[:3], *drawn[3]))
    facts = [draw(st.lists(fact, max_size=size)) for size in (15, 4, 4)]
    oracle = TimelineOracle(*map(expand, facts), num_entities, num_steps)
    return make_interval_timeline(*facts, **sizes), oracle
