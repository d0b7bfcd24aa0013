"""The packaged dataset as it is built: the steps, the paper's example, the split."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.datasets.world_leaders import ALWAYS_TRAIN


@pytest.fixture(scope="module")
def dataset() -> WorldLeaders:
    return WorldLeaders()


def facts(dataset: WorldLeaders, split: str) -> set[tuple[str, str, str]]:
    rows = dataset.timeline.split(split).facts[:, :3].unique(dim=0).tolist()
    entities, relations = dataset.entity_names, dataset.relation_names
    return {(entities[head], relations[rel], entities[tail]) for head, rel, tail in rows}


def test_yearly_steps(dataset: WorldLeaders) -> None:
    assert str(dataset).startswith("WorldLeaders(75 steps 1950 … 2024, ")
    assert dataset.timeline.labels == [str(year) for year in range(1950, 2025)]
    assert dataset.step_of("2021-01-20") == 71
    assert sum(len(facts(dataset, split)) for split in ("train", "val", "test")) >= 800


def test_the_example_of_the_paper(dataset: WorldLeaders) -> None:
    trump, biden, us = map(dataset.entities.index, ("Donald Trump", "Joe Biden", "United States"))
    president = dataset.relations.index("president of")
    for year, expected in ((2016, None), (2017, trump), (2020, trump), (2021, biden), (2024, biden)):
        rows = dataset[dataset.step_of(year)].train.tolist()
        presidents = [head for head, rel, tail, _ in rows if (rel, tail) == (president, us)]
        assert len(presidents) == 1
        assert expected is None or presidents == [expected]
    snapshot = dataset[dataset.step_of(2021)]
    assert [biden, president, us, snapshot.time] in snapshot.added.tolist()
    assert [trump, president, us, snapshot.time - 1] in snapshot.removed.tolist()
    assert [trump, president, us, snapshot.time] in snapshot.deleted(window=10).tolist()


def test_what_the_examples_ask_is_in_train(dataset: WorldLeaders) -> None:
    assert {(rel, tail) for _, rel, tail in facts(dataset, "train")} >= ALWAYS_TRAIN
    for split in ("val", "test"):
        assert not {(rel, tail) for _, rel, tail in facts(dataset, split)} & ALWAYS_TRAIN


def test_a_tenth_each_is_set_aside(dataset: WorldLeaders) -> None:
    sizes = {split: len(facts(dataset, split)) for split in ("train", "val", "test")}
    for split in ("val", "test"):
        assert 0.08 < sizes[split] / sum(sizes.values()) < 0.12
        # Not of one kind only.
        assert len({rel for _, rel, _ in facts(dataset, split)}) >= 6


def test_no_row_in_two_splits(dataset: WorldLeaders) -> None:
    train, val, test = (
        set(map(tuple, dataset.timeline.split(split).quads().tolist())) for split in ("train", "val", "test")
    )
    assert not train & val
    assert not train & test
    assert not val & test


@pytest.mark.parametrize("split", ["val", "test"])
def test_held_out_facts_have_support(dataset: WorldLeaders, split: str) -> None:
    train = dataset.timeline.train.quads().tolist()
    seen = {(entity, time) for head, _, tail, time in train for entity in (head, tail)}
    since: dict[int, int] = {}
    for _, rel, _, time in train:
        since[rel] = min(time, since.get(rel, time))
    for head, rel, tail, time in dataset.timeline.split(split).quads().tolist():
        assert (head, time) in seen
        assert (tail, time) in seen
        assert since[rel] <= time


def test_deterministic_and_cached(dataset: WorldLeaders, tmp_path: Path) -> None:
    for other in (WorldLeaders(), WorldLeaders(tmp_path), WorldLeaders(tmp_path)):
        assert other.entity_names == dataset.entity_names
        for split in ("train", "val", "test"):
            assert torch.equal(other.timeline.split(split).facts, dataset.timeline.split(split).facts)
    assert len(list((tmp_path / "processed").iterdir())) == 1
