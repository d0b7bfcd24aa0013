"""The list of datasets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tkg_incremental import datasets, models, strategies
from tkg_incremental.cli import main
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.models.decoders import DECODERS as DECODER_CLASSES
from tkg_incremental.registry import DATASETS, DECODERS, MODELS, STRATEGIES, make_dataset


def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    WorldLeaders(tmp_path / "WorldLeaders")
    (tmp_path / "YAGO11k" / "raw").mkdir(parents=True)
    (tmp_path / "YAGO11k" / "raw" / "train.txt").write_text("")
    assert main(["datasets", "--root", str(tmp_path)]) == 0
    sizes, about = capsys.readouterr().out.split("\n\n")
    header, _, *rows = sizes.splitlines()
    assert header.split()[:8] == ["name", "kind", "entities", "relations", "steps", "train", "val", "test"]
    line = dict(zip(DATASETS, rows, strict=True))
    assert line["WorldLeaders"].split()[:5] == ["WorldLeaders", "intervals", "990", "11", "75"]
    assert line["ICEWS14"].split()[1] == "events"
    assert "ready, " in line["WorldLeaders"]
    assert "raw files" in line["YAGO11k"]
    assert line["Wikidata12k"].endswith(" –")
    assert about.split()[:4] == ["name", "description", "licence", "source"]
    assert all(info.license in about and info.source in about for info in DATASETS.values())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["WorldLeaders", "YAGO11k"]  # looking makes nothing


@pytest.mark.parametrize("name", DATASETS)
def test_counts_are_those_of_the_dataset(name: str, tmp_path: Path) -> None:
    if name not in ("WorldLeaders", "SyntheticTKG") and not os.environ.get("TKG_INCREMENTAL_MIRROR"):
        pytest.skip("needs TKG_INCREMENTAL_MIRROR")
    line = make_dataset(name, tmp_path).timeline
    splits = [line.split(split).num_rows for split in ("train", "val", "test")]
    assert DATASETS[name][1:7] == (line.num_entities, line.num_relations, line.num_steps, *splits)
    assert (DATASETS[name].kind == "events") == line.is_events


def test_names_are_those_of_the_package() -> None:
    assert {f"{name}" for name in DATASETS} <= set(datasets.__all__)
    assert set(MODELS) == set(models.ZOO)
    assert set(DECODERS) == set(DECODER_CLASSES)
    for kind, _ in STRATEGIES.values():
        assert kind in strategies.__all__


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"dataset must be one of .* \(got 'YAGO11'; did you mean YAGO11k\?\)"):
        make_dataset("YAGO11", "data")
