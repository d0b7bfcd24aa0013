"""The published benchmarks from their raw files: the counts of the paper's files, and its data sizes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tkg_incremental.datasets import Wikidata12k, YAGO11k
from tkg_incremental.datasets.download import MIRROR_VARIABLE
from tkg_incremental.models import Static, load_model, save_model
from tkg_incremental.ops.keys import pack

pytestmark = pytest.mark.skipif(
    not os.environ.get(MIRROR_VARIABLE),
    reason=f"needs the raw files: set {MIRROR_VARIABLE} to a mirror of them",
)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[type, Path]:
    return {cls: tmp_path_factory.mktemp(cls.__name__) for cls in (Wikidata12k, YAGO11k)}


@pytest.fixture(scope="module")
def wikidata(roots: dict[type, Path]) -> Wikidata12k:
    return Wikidata12k(roots[Wikidata12k])


@pytest.fixture(scope="module")
def yago(roots: dict[type, Path]) -> YAGO11k:
    return YAGO11k(roots[YAGO11k])


def counts(dataset: Wikidata12k | YAGO11k) -> tuple[list[int], list[int]]:
    """Rows and unique rows of train, validation and test."""
    tables = [dataset.timeline.split(name) for name in ("train", "val", "test")]
    return [table.num_rows for table in tables], [table.merged().num_rows for table in tables]


def rows(dataset: Wikidata12k | YAGO11k, name: str) -> np.ndarray:
    """The distinct rows of a split, each as one number."""
    sizes = [dataset.num_entities, dataset.num_relations, dataset.num_entities, dataset.num_steps]
    return np.unique(pack(list(dataset.timeline.split(name).quads().unbind(1)), sizes).numpy())


def ever_in_a_row(dataset: Wikidata12k | YAGO11k) -> int:
    return int((dataset.timeline.first_seen < dataset.num_steps).sum())


def test_wikidata12k(wikidata: Wikidata12k) -> None:
    assert str(wikidata) == (
        "Wikidata12k(78 steps 1000–1595 … 2018–2020, 12554 entities, 24 relations, 257542 / 20764 / 19746 rows, "
        "17614 / 2131 / 2130 facts)"
    )
    assert counts(wikidata) == ([257_542, 20_764, 19_746], [255_078, 20_711, 19_735])
    assert ever_in_a_row(wikidata) == 8_349
    assert len(wikidata) == wikidata.num_steps == 78
    assert wikidata.timeline.base_step == 54


def test_yago11k(yago: YAGO11k) -> None:
    assert counts(yago) == ([215_894, 23_197, 22_567], [215_894, 23_197, 22_567])
    assert (yago.num_entities, ever_in_a_row(yago), yago.num_relations) == (10_623, 9_545, 10)
    assert len(yago) == yago.num_steps == 61
    assert yago.timeline.base_step == 42


@pytest.mark.parametrize(
    ("name", "first", "last", "added", "everything"),
    [("wikidata", 54, 77, 424_652, 4_705_750), ("yago", 42, 60, 296_167, 6_398_053)],
)
def test_data_size(
    name: str, first: int, last: int, added: int, everything: int, request: pytest.FixtureRequest
) -> None:
    dataset = request.getfixturevalue(name)
    sizes = torch.tensor([len(dataset[step].added) for step in range(first, last)], dtype=torch.double)
    assert round(float(sizes.mean()) * 1000) == added
    sizes = torch.tensor([len(dataset[step].current) for step in range(first, last + 1)], dtype=torch.double)
    assert round(float(sizes.mean()) * 1000) == everything


@pytest.mark.parametrize(("step", "known"), [(54, 5_823), (77, 8_349)])
def test_known_entities(wikidata: Wikidata12k, step: int, known: int) -> None:
    assert len(wikidata[step].known_entities) == known


@pytest.mark.parametrize(("cls", "train"), [(Wikidata12k, 272_377), (YAGO11k, 220_025)])
def test_single_step_facts(cls: type[Wikidata12k], train: int, roots: dict[type, Path]) -> None:
    dataset = cls(roots[cls], single_step_facts=True)
    assert dataset.timeline.train.num_rows == train
    # The two variants live side by side in one root.
    assert cls(roots[cls]).timeline.train.num_rows < train


def test_splits_overlap_as_published(wikidata: Wikidata12k) -> None:
    train, val, test = (rows(wikidata, name) for name in ("train", "val", "test"))
    pairs = ((train, val), (train, test), (val, test))
    assert [len(np.intersect1d(*pair)) for pair in pairs] == [590, 526, 24]


def test_leak_free(wikidata: Wikidata12k, roots: dict[type, Path]) -> None:
    leak_free = Wikidata12k(roots[Wikidata12k], leak_free=True)
    train, val, test = (rows(leak_free, name) for name in ("train", "val", "test"))
    for pair in ((train, val), (train, test), (val, test)):
        assert len(np.intersect1d(*pair)) == 0
    # Nothing else goes.
    assert np.array_equal(train, rows(wikidata, "train"))
    assert np.array_equal(val, np.setdiff1d(rows(wikidata, "val"), train))
    earlier = np.union1d(train, rows(wikidata, "val"))
    assert np.array_equal(test, np.setdiff1d(rows(wikidata, "test"), earlier))


def test_names(wikidata: Wikidata12k, yago: YAGO11k) -> None:
    assert "position held" in wikidata.relations
    assert all(not name.startswith("P") or " " in name for name in wikidata.relation_names)
    assert wikidata[54].label == wikidata.timeline.labels[54] == "1995"
    assert wikidata.step_of("1995-06-30") == 54
    assert "is married to" in yago.relations
    assert not any(set("<>_") & set(name) for name in [*yago.entity_names, *yago.relation_names])


def test_labels(roots: dict[type, Path], wikidata: Wikidata12k) -> None:
    assert wikidata.entity_names[2454] == "Billy Bob Thornton"
    assert wikidata.entities.index("Q202735") == wikidata.entities.index("billy bob thornton") == 2454
    assert len(set(wikidata.entity_names)) == 12_554
    assert sum(name.startswith("Q") and name[1:].isdigit() for name in wikidata.entity_names) == 37
    plain = Wikidata12k(roots[Wikidata12k], labels=False)
    assert plain.entity_names[2454] == "Q202735"
    assert all(name.startswith("Q") and name[1:].isdigit() for name in plain.entity_names)


def test_q_ids_stay_in_a_saved_model(wikidata: Wikidata12k, tmp_path: Path) -> None:
    save_model(Static.from_dataset(wikidata, 4), tmp_path / "model.pt")
    loaded = load_model(tmp_path / "model.pt")
    answers = loaded.query(head="Q202735", rel="spouse", time="1997", k=1)
    assert answers == loaded.query(head="Billy Bob Thornton", rel="spouse", time="1997", k=1)


def test_without_the_label_file(
    roots: dict[type, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Entities are shown by Q-ids, and a warning says so."""
    files = tmp_path / "mirror" / "wikidata"
    shutil.copytree(roots[Wikidata12k] / "raw", files, ignore=shutil.ignore_patterns("id2name.csv"))
    monkeypatch.setenv(MIRROR_VARIABLE, str(files.parent))
    dataset = Wikidata12k(tmp_path / "root")
    assert dataset.entity_names[2454] == "Q202735"
    assert "entities are shown by Q-ids" in caplog.text


def test_label_file(roots: dict[type, Path], wikidata: Wikidata12k) -> None:
    path = roots[Wikidata12k] / "labels.tsv"
    named, other = Wikidata12k(roots[Wikidata12k], labels=False).entity_names[:2]
    path.write_text(f"{named}\tAn Example\n")
    try:
        dataset = Wikidata12k(roots[Wikidata12k])
        assert dataset.entity_names[:2] == ["An Example", other]
        assert dataset.entities.index(named) == 0
    finally:
        path.unlink()
