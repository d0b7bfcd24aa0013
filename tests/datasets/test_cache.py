"""A dataset's life on disk: fetched, built and cached once, and mended when a file is damaged."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from tkg_incremental.datasets import DownloadError, SyntheticTKG
from tkg_incremental.datasets.atise import ATISEDataset
from tkg_incremental.datasets.base import Graph
from tkg_incremental.datasets.download import MIRROR_VARIABLE
from tkg_incremental.storage import load_verified, save_verified

FILES = {
    "entity2id.txt": "Trump\t0\nBiden\t1\nUS\t2\n",
    "relation2id.txt": "president of\t0\n",
    "train.txt": "".join(
        f"0\t0\t2\t{year}-##-##\t{year + 1}-##-##\n" for year in range(1990, 2000) for _ in range(200)
    ),
    "valid.txt": "1\t0\t2\t1991-##-##\t1999-##-##\n",
    "test.txt": "1\t0\t2\t1995-##-##\t####-##-##\n",
}


class Tiny(ATISEDataset):
    """The format and the ways of the published benchmarks, in a few lines."""

    folder: ClassVar[str] = "tiny"
    checksums: ClassVar[dict[str, str]] = {
        name: hashlib.sha256(content.encode()).hexdigest() for name, content in FILES.items()
    }
    builds: ClassVar[list[str]] = []

    def build(self) -> Graph:
        self.builds.append(self.variant)
        return super().build()


@pytest.fixture(autouse=True)
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    (folder / "tiny").mkdir(parents=True)
    for name, content in FILES.items():
        (folder / "tiny" / name).write_bytes(content.encode())
    monkeypatch.setenv(MIRROR_VARIABLE, str(folder))
    Tiny.builds.clear()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def cached(root: Path) -> Path:
    (path,) = (root / "processed").iterdir()
    return path


def test_built_once(root: Path) -> None:
    first, second = Tiny(root), Tiny(root)
    assert Tiny.builds == ["published"]
    assert repr(first) == repr(second)
    for split in ("train", "val", "test"):
        assert torch.equal(first.timeline.split(split).facts, second.timeline.split(split).facts)
    assert first.entity_names == second.entity_names == ["Trump", "Biden", "US"]
    Tiny(root, force_reload=True)
    assert len(Tiny.builds) == 2


def test_options_do_not_share_a_cache(root: Path) -> None:
    for options in (
        {},
        {"single_step_facts": True},
        {"leak_free": True},
        {"single_step_facts": True, "leak_free": True},
    ):
        Tiny(root, **options)
    assert len(set(Tiny.builds)) == len(list((root / "processed").iterdir())) == 4


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign", "of another kind", "of another dataset"])
def test_a_damaged_cache_is_built_again(root: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    before = Tiny(root)
    content = bytearray(cached(root).read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    replaced = {"truncate": content[:-100], "flip": content, "empty": b"", "foreign": b"something else" * 99}
    if damage == "of another kind":
        save_verified({"weights": torch.zeros(3)}, cached(root))
    elif damage == "of another dataset":
        save_verified({**load_verified(cached(root)), "dataset": "Tinier"}, cached(root))
    else:
        cached(root).write_bytes(replaced[damage])
    after = Tiny(root)
    assert "it is built again" in caplog.text
    assert ("give each dataset a folder of its own" in caplog.text) == (damage == "of another dataset")
    assert len(Tiny.builds) == 2
    assert torch.equal(before.timeline.train.facts, after.timeline.train.facts)
    Tiny(root)  # and is whole again
    assert len(Tiny.builds) == 2


def test_a_damaged_raw_file_is_downloaded_again(root: Path) -> None:
    before = Tiny(root)
    raw = root / "raw" / "train.txt"
    raw.write_text("0\t0\t2\t1990-##-##\t1999-##-##\n")  # well formed, but not what was published
    after = Tiny(root, force_reload=True)
    assert raw.read_text() == FILES["train.txt"]
    assert torch.equal(before.timeline.train.facts, after.timeline.train.facts)


def test_a_damaged_raw_file_that_cannot_be_fetched(root: Path, mirror: Path) -> None:
    Tiny(root)
    (root / "raw" / "train.txt").write_text("damaged")
    (mirror / "tiny" / "train.txt").unlink()
    with pytest.raises(DownloadError, match=r"train\.txt"):
        Tiny(root, force_reload=True)
    Tiny(root)  # what was cached before still opens


def test_the_cache_needs_no_source(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tiny(root)
    for path in (root / "raw").iterdir():
        path.unlink()
    monkeypatch.setenv(MIRROR_VARIABLE, str(root / "nowhere"))
    assert len(Tiny(root)) > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_processes_on_one_root(root: Path, mirror: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready, found = context.Barrier(2), context.Queue()

    def build() -> None:
        torch.set_num_threads(1)  # the threads of this process are not there after a fork
        Tiny.builds.clear()
        ready.wait(60)
        found.put((repr(Tiny(root)), len(Tiny.builds)))

    processes = [context.Process(target=build) for _ in range(2)]
    for process in processes:
        process.start()
    (first, built), (second, built_again) = found.get(timeout=120), found.get(timeout=120)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert first == second == repr(Tiny(root))
    assert built + built_again == 1  # the other waited, and found it there


def test_the_cache_is_small(root: Path) -> None:
    Tiny(root)
    splits = load_verified(cached(root))["splits"]
    assert all(facts.dtype == torch.int32 and facts.size(1) == 5 for facts in splits.values())


def test_in_memory_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    SyntheticTKG(num_entities=20)
    assert sorted(tmp_path.rglob("*")) == before
