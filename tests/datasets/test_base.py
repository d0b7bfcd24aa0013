"""A dataset as a sequence of snapshots."""

from __future__ import annotations

import pytest
import torch

from tkg_incremental.data import Snapshot
from tkg_incremental.datasets import SyntheticTKG, WorldLeaders


@pytest.fixture(scope="module")
def leaders() -> WorldLeaders:
    return WorldLeaders()


def test_by_step_and_by_date(leaders: WorldLeaders) -> None:
    assert leaders[47].label == leaders["1997"].label == leaders["1997-05-02"].label == "1997"
    assert leaders[-1].time == 74
    for step in (75, -76):
        with pytest.raises(IndexError, match=rf"step must lie in 0 … 74 \(got {step}\)"):
            leaders[step]
    with pytest.raises(ValueError, match="1950 … 2024"):
        leaders["1949"]


def test_slices(leaders: WorldLeaders) -> None:
    part = leaders[10:20]
    assert [snapshot.time for snapshot in part] == list(range(10, 20))
    assert part["1965"].time == 15
    rows = " / ".join(str(sum(len(each[name]) for each in part)) for name in ("train", "val", "test"))
    assert str(part).startswith("WorldLeaders(10 of 75 steps 1960 … 1969, ")
    assert str(part).endswith(f", {rows} rows)")
    assert [snapshot.label for snapshot in leaders["1990":"1992"]] == ["1990", "1991", "1992"]
    assert len(leaders["2020":]) == 5
    assert len(leaders[:]) == 75
    assert str(leaders[:0]).startswith("WorldLeaders(0 steps, ")
    with pytest.raises(IndexError, match=r"does not include '1997' \(got a slice of 10 of 75 steps 1960 … 1969\)"):
        part["1997"]


def test_transform() -> None:
    def mark(snapshot: Snapshot) -> Snapshot:
        snapshot.marked = True
        return snapshot

    dataset = SyntheticTKG(num_entities=20, transform=mark)
    assert dataset[3].marked
    assert all(snapshot.marked for snapshot in dataset[2:4])


def test_arguments_that_are_not_supported() -> None:
    with pytest.raises(ValueError, match="pre_transform is not supported: .*use transform"):
        SyntheticTKG(num_entities=20, pre_transform=lambda snapshot: snapshot)
    with pytest.raises(ValueError, match="pre_filter is not supported: .*use a slice"):
        SyntheticTKG(num_entities=20, pre_filter=lambda snapshot: True)


def test_on_another_device() -> None:
    dataset = SyntheticTKG(num_entities=20)
    assert dataset.to("cpu").timeline is dataset.timeline
    assert dataset[0].edge_index.device == torch.device("cpu")
