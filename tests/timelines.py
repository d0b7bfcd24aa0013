"""Random small timelines for property tests."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from oracles import Row, TimelineOracle
from torch import Tensor

from tkg_incremental.data import TimeAxis, Timeline


def to_tensor(rows: list[Row]) -> Tensor:
    return torch.tensor(rows, dtype=torch.long).view(-1, 4)


def make_timeline(
    train: list[Row],
    val: list[Row] | None = None,
    test: list[Row] | None = None,
    *,
    num_entities: int,
    num_relations: int,
    num_steps: int,
) -> Timeline:
    splits = {"train": to_tensor(train), "val": to_tensor(val or []), "test": to_tensor(test or [])}
    axis = TimeAxis.from_instants(range(num_steps), "index")
    return Timeline(splits, num_entities, num_relations, axis)


@st.composite
def timelines(draw: st.DrawFn) -> tuple[Timeline, TimelineOracle]:
    """A timeline and its oracle. Few ids make for repeated rows, one entity or relation, empty steps; splits
    may be empty, and share rows."""
    num_entities, num_relations, num_steps = (draw(st.integers(1, limit)) for limit in (6, 3, 7))
    row = st.tuples(*(st.integers(0, size - 1) for size in (num_entities, num_relations, num_entities, num_steps)))
    train, val, test = (
        draw(st.lists(row, max_size=40)),
        draw(st.lists(row, max_size=8)),
        draw(st.lists(row, max_size=8)),
    )
    sizes = {"num_entities": num_entities, "num_relations": num_relations, "num_steps": num_steps}
    return make_timeline(train, val, test, **sizes), TimelineOracle(train, val, test, num_entities, num_steps)
