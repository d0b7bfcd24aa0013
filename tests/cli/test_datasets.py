"""The list of datasets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tkg_incremental.cli import main
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.registry import ABOUT, DATASETS, make_dataset


def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    WorldLeaders(tmp_path / "WorldLeaders")
    (tmp_path / "YAGO11k" / "raw").mkdir(parents=True)
    (tmp_path / "YAGO11k" / "raw" / "train.txt").write_text("")
    assert main(["datasets", "--root", str(tmp_path)]) == 0
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:7] == ["name", "entities", "relations", "steps", "train", "val", "test"]
    line = dict(zip(DATASETS, rows, strict=True))
    assert line["WorldLeaders"].split()[:4] == ["WorldLeaders", "990", "11", "75"]
    assert "ready, " in line["WorldLeaders"]
    assert "raw files" in line["YAGO11k"]
    assert " – " in line["Wikidata12k"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["WorldLeaders", "YAGO11k"]  # looking makes nothing


@pytest.mark.parametrize("name", DATASETS)
def test_counts_are_those_of_the_dataset(name: str, tmp_path: Path) -> None:
    if name in ("Wikidata12k", "YAGO11k") and not os.environ.get("TKG_INCREMENTAL_MIRROR"):
        pytest.skip("needs TKG_INCREMENTAL_MIRROR")
    line = make_dataset(name, tmp_path).timeline
    splits = [len(line.split(split)) for split in ("train", "val", "test")]
    assert ABOUT[name].size == (line.num_entities, line.num_relations, line.num_steps, *splits)


def test_every_dataset_is_described() -> None:
    assert list(ABOUT) == list(DATASETS)
