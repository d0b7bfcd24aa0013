"""Checkpoints on disk: whole or not there, pruned, and damaged ones passed over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from tkg_incremental.storage import save_verified
from tkg_incremental.training import RunFolder, RunFolderError
from tkg_incremental.training.run_folder import PARTS, RESULTS


def state(number: int, **parts: Any) -> dict[str, Any]:
    return {**dict.fromkeys(PARTS), "about": number, **parts}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run", keep=3)


def names(folder: RunFolder) -> list[str]:
    return [path.name for path in folder.checkpoints]


def test_name(folder: RunFolder) -> None:
    assert str(folder) == f"RunFolder({str(folder.path)!r}, 0 checkpoints)"


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_only_the_newest_are_kept(tmp_path: Path, keep: int) -> None:
    folder = RunFolder(tmp_path, keep)
    for number in range(1, 5):
        folder.save(state(number))
    assert names(folder) == [f"{number:08d}.pt" for number in range(1, 5)][-keep:]
    assert folder.latest()["about"] == 4


def test_keep_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"keep must be at least 1 \(got 0\)"):
        RunFolder(tmp_path, keep=0)


def test_views_are_saved_without_what_they_are_views_of(folder: RunFolder) -> None:
    table = torch.arange(1 << 20)
    folder.save(state(1, weights={"rows": [table[5:8], None], "pair": (table[:2], 1)}))
    assert folder.checkpoints[0].stat().st_size < 1 << 16
    weights = folder.latest()["weights"]
    assert weights["rows"][0].tolist() == [5, 6, 7]
    assert weights["pair"][0].tolist() == [0, 1]
    assert isinstance(weights["pair"], tuple)


class Surprise:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.path,)


def damage(path: Path, how: str, witness: Path) -> None:
    content = bytearray(path.read_bytes())
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "foreign":
        torch.save({"about": 1}, path)
    elif how == "swapped":  # a whole file of this package, but no checkpoint
        save_verified({"about": 1, "weights": {}}, path)
    elif how == "list":
        save_verified([1, 2], path)
    elif how == "code":
        save_verified(state(1, weights=Surprise(witness)), path)


DAMAGES = ["truncated", "flipped", "empty", "foreign", "swapped", "list", "code"]


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over(
    folder: RunFolder, tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        folder.save(state(number))
    damage(folder.checkpoints[-1], how, tmp_path / "witness")
    assert folder.latest()["about"] == 1
    assert "the checkpoint before is used" in caplog.text
    assert "00000002.pt" in caplog.text
    assert not (tmp_path / "witness").exists()  # what the file wanted to be run was not
    # It does not count as one of those to keep, and neither does its number come again by chance.
    assert names(folder) == ["00000001.pt"]
    for number in (3, 4, 5):
        folder.save(state(number))
    assert [folder.latest()["about"], len(folder.checkpoints)] == [5, 3]
    folder.clear()
    assert os.listdir(folder.path / "checkpoints") == []


@pytest.mark.parametrize("how", DAMAGES)
def test_all_are_damaged(folder: RunFolder, tmp_path: Path, how: str) -> None:
    for number in (1, 2):
        folder.save(state(number))
    for path in folder.checkpoints:
        damage(path, how, tmp_path / "witness")
    with pytest.raises(RunFolderError, match="to resume from in .*: all of its 2 checkpoints are damaged$"):
        folder.latest()


def test_nothing_to_resume(folder: RunFolder) -> None:
    with pytest.raises(RunFolderError, match="there is no checkpoint to resume from in '.*run'$"):
        folder.latest()


def test_other_files_are_no_checkpoints(folder: RunFolder) -> None:
    folder.save(state(1))
    checkpoints = folder.path / "checkpoints"
    for name in ("1 copy.pt", "model.pt", "2.txt", "00000002.pt.bak"):
        (checkpoints / name).write_text("not ours")
    folder.save(state(2))
    assert names(folder) == ["00000001.pt", "00000002.pt"]
    assert folder.latest()["about"] == 2


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    halves = [tmp_path / "checkpoints" / ".00000001.pt.0a1b2c3d.tmp", tmp_path / ".model.pt.0a1b2c3d.tmp"]
    mine = [tmp_path / "notes.tmp", tmp_path / "checkpoints" / "notes.tmp", tmp_path / ".report.html.0a1b2c3d.tmp"]
    for path in halves + mine:
        path.write_text("half")
    RunFolder(tmp_path)
    assert not any(path.exists() for path in halves)
    assert all(path.exists() for path in mine)


def test_clear_removes_results_and_nothing_else(folder: RunFolder) -> None:
    folder.save(state(1))
    for name in (*RESULTS, "notes.txt"):
        (folder / name).write_text("x")
    folder.clear()
    left = sorted(path.name for path in folder.path.iterdir())
    assert left == [".lock", "checkpoints", "notes.txt"]


def test_one_holder_at_a_time(folder: RunFolder) -> None:
    with pytest.raises(RunFolderError, match="another process.* is running in '.*run'; use another folder"):
        RunFolder(folder.path)
    folder.release()
    RunFolder(folder.path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_another_process_is_refused(folder: RunFolder) -> None:
    def try_in_fork() -> int:
        child = os.fork()
        if child == 0:
            try:
                RunFolder(folder.path)
                os._exit(0)
            except RunFolderError:
                os._exit(3)
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert try_in_fork() == 3
    folder.release()
    assert try_in_fork() == 0  # which ended without releasing it
    RunFolder(folder.path)


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="cannot use '.*file' as the folder of a run"):
        RunFolder(tmp_path / "file")


def test_a_checkpoint_that_cannot_be_read(folder: RunFolder) -> None:
    (folder.path / "checkpoints" / "00000001.pt").mkdir(parents=True)
    with pytest.raises(RunFolderError, match=r"cannot read the checkpoint '.*00000001\.pt'"):
        folder.latest()
