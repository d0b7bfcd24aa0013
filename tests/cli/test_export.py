"""Embeddings with their names."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tkg_incremental.cli import main
from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.data.catalog import Catalog
from tkg_incremental.models import HyTE, load_model, save_model

Fails = Callable[..., str]


def read_tsv(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))


def load(folder: Path, kind: str) -> dict[str, torch.Tensor]:
    if kind == "numpy":
        with np.load(folder / "embeddings.npz", allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    return dict(pytest.importorskip("safetensors.torch").load_file(folder / "embeddings.safetensors"))


@pytest.mark.parametrize("kind", ["safetensors", "numpy"])
def test_tables_and_names(runs: dict[str, Path], tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(runs["tie-0"]), "--to", str(tmp_path / "out"), "--format", kind]) == 0
    assert "entity_vectors [35, 8]" in capsys.readouterr().out
    model = load_model(runs["tie-0"] / "model.pt")
    catalog = model.catalog
    assert catalog is not None
    found = load(tmp_path / "out", kind)
    assert set(found) == {"entity_vectors", "frequency", "phase", "relation_vectors"}
    for name, table in model.tables().items():
        assert torch.equal(found[name], table)
    _, *entities = read_tsv(tmp_path / "out" / "entities.tsv")
    assert [name for _, name, _ in entities] == catalog.entities.names
    assert [int(i) for i, _, _ in entities] == list(range(35))
    first = {name: step for _, name, step in entities}
    assert (first["Aland"], first["leader 2 of Genovia"]) == ("2000", "2008")
    assert read_tsv(tmp_path / "out" / "relations.tsv") == [["id", "name"], ["0", "leads"]]
    assert read_tsv(tmp_path / "out" / "steps.tsv")[24] == ["23", "2023"]
    assert ["relation_vectors", "relation", "1", "8"] in read_tsv(tmp_path / "out" / "tables.tsv")


def test_awkward_names_and_entities_without_facts(tmp_path: Path) -> None:
    names = ["a\tb", 'say "hi"', "two\nlines", "日本", "re\rturn", "=cmd|x"]
    model = HyTE(6, 1, 2, hidden_channels=4)
    axis = TimeAxis.from_instants([1990, 1991])
    facts = torch.empty(0, 5, dtype=torch.int32)
    model.catalog = Catalog(Vocabulary(names), Vocabulary(["knows"]), axis, torch.tensor([0, 1, 2, 0, 0, 0]), facts)
    save_model(model, tmp_path / "run" / "model.pt")
    assert main(["export", str(tmp_path / "run"), "--to", str(tmp_path), "--format", "numpy"]) == 0
    _, *rows = read_tsv(tmp_path / "entities.tsv")
    assert [row[1] for row in rows] == names
    assert [row[2] for row in rows] == ["1990", "1991", "", "1990", "1990", "1990"]
    assert main(["export", str(tmp_path / "run"), "--to", str(tmp_path), "--format", "csv", "--guard-formulas"]) == 0
    _, *rows = read_tsv(tmp_path / "entities.tsv")
    assert [row[1] for row in rows] == [*names[:-1], "'=cmd|x"]
    with open(tmp_path / "entity_vectors.csv", encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    assert [row[1] for row in rows] == [*names[:-1], "'=cmd|x"]
    assert torch.tensor([list(map(float, row[2:])) for row in rows]).equal(model.tables()["entity_vectors"])
    assert {axis for _, axis, *_ in read_tsv(tmp_path / "tables.tsv")[1:]} == {"entity", "relation", "time"}


def test_help_names_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    assert "--at DATE" in capsys.readouterr().out


def test_errors(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    assert "required: --to" in fails(2, "export", runs["tie-0"])
    said = fails(2, "export", runs["tie-0"], "--to", tmp_path, "--format", "excel")
    assert "expected one of safetensors, numpy, csv, parquet (got 'excel')" in said
    assert "there is no run folder" in fails(3, "export", tmp_path / "none", "--to", tmp_path)
    (tmp_path / "file").write_text("")
    assert "tkg-incremental export: error:" in fails(3, "export", runs["tie-0"], "--to", tmp_path / "file")


@pytest.mark.parametrize("kind", ["numpy", "csv"])
def test_vectors_at_a_time(runs: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert main(["export", str(runs["tie-0"]), "--to", str(tmp_path), "--format", kind, "--at", "2010-05-01"]) == 0
    model = load_model(runs["tie-0"] / "model.pt")
    with torch.no_grad():
        expected = model.candidate_vectors(torch.arange(35), 10)
    if kind == "csv":
        with open(tmp_path / "entity_vectors.csv", encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        found = torch.tensor([list(map(float, row[2:])) for row in rows])
    else:
        found = load(tmp_path, kind)["entity_vectors"]
    assert torch.equal(found, expected)
    assert {row[0] for row in read_tsv(tmp_path / "tables.tsv")[1:]} == {"entity_vectors", "relation_vectors"}


def test_parquet(runs: dict[str, Path], tmp_path: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pyarrow", None)
        said = fails(2, "export", runs["tie-0"], "--to", tmp_path, "--format", "parquet")
        assert "--format parquet needs pyarrow: pip install 'tkg-incremental[parquet]'" in said
    pytest.importorskip("pyarrow")
    assert main(["export", str(runs["tie-0"]), "--to", str(tmp_path), "--format", "parquet"]) == 0
    frame = pytest.importorskip("pandas").read_parquet(tmp_path / "entity_vectors.parquet")
    assert list(frame.columns[:3]) == ["id", "name", "v0"]
