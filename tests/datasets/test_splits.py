from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tkg_incremental.datasets.options import Holdout
from tkg_incremental.datasets.splits import random_split, supported_split


class Interval(NamedTuple):
    head: int
    rel: int
    tail: int
    start: int
    end: int


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(0, 5))
def test_random_split(groups: list[int], seed: int) -> None:
    names = {group: index for index, group in enumerate(sorted(set(groups)))}
    group = torch.tensor([names[value] for value in groups])
    masks = random_split(group, Holdout(0.2, 0.1, seed))
    assert torch.equal(sum(mask.long() for mask in masks.values()), torch.ones(len(groups), dtype=torch.long))
    parts = {split: set(group[mask].tolist()) for split, mask in masks.items()}
    assert sum(map(len, parts.values())) == len(names)  # no group in two splits
    assert len(parts["val"]) == round(0.2 * len(names))
    assert len(parts["test"]) == round(0.1 * len(names))


def test_random_split_follows_the_seed() -> None:
    group = torch.arange(100)
    one, same, other = (random_split(group, Holdout(0.2, 0.2, seed))["test"] for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_random_split_of_nothing() -> None:
    masks = random_split(torch.empty(0, dtype=torch.long), Holdout(0.1, 0.1))
    assert [len(mask) for mask in masks.values()] == [0, 0, 0]


@pytest.mark.parametrize("shares", [(-0.1, 0.1), (0.1, -0.1), (0.5, 0.5), (1.2, 0.0)])
def test_shares_that_leave_nothing(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=rf"leave facts to train on \(got {shares[0]} and {shares[1]}\)"):
        Holdout(*shares)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    start = draw(st.integers(0, 5))
    ids = [draw(st.integers(0, limit)) for limit in (4, 2, 4)]
    return Interval(*ids, start, draw(st.integers(start, 5)))


@given(st.lists(st.tuples(intervals(), st.booleans()), max_size=40), st.integers(0, 5))
def test_supported_split(drawn: list[tuple[Interval, bool]], seed: int) -> None:
    facts, movable = [fact for fact, _ in drawn], [can_move for _, can_move in drawn]
    splits = supported_split(facts, movable, num_steps=6, val=0.2, test=0.2, seed=seed)
    assert splits == supported_split(facts, movable, num_steps=6, val=0.2, test=0.2, seed=seed)
    assert all(can_move or split == "train" for can_move, split in zip(movable, splits, strict=True))
    assert max(splits.count("val"), splits.count("test")) <= round(0.2 * len(facts))
    train = [fact for fact, split in zip(facts, splits, strict=True) if split == "train"]
    for fact, split in zip(facts, splits, strict=True):
        for step in range(fact.start, fact.end + 1) if split != "train" else ():
            now = [other for other in train if other.start <= step <= other.end]
            assert any(fact.head in (other.head, other.tail) for other in now)
            assert any(fact.tail in (other.head, other.tail) for other in now)
            assert any(fact.rel == other.rel for other in train if other.start <= step)


def test_supported_split_takes_what_it_can() -> None:
    facts = [Interval(head, 0, tail, 0, 3) for head in range(8) for tail in range(8) if head != tail]
    splits = supported_split(facts, [True] * len(facts), num_steps=4, val=0.1, test=0.2, seed=0)
    assert (splits.count("val"), splits.count("test")) == (round(5.6), round(11.2))
