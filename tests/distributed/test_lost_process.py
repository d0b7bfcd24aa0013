"""A process is killed in the middle of a step; the run continues with fewer processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tkg_incremental.training import Result

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")

TESTS = Path(__file__).parents[1]
FLAGS = ["--dataset", "SyntheticTKG", "--strategy", "tie", "--hidden-channels", "8", "--epochs", "2"]
SMALL = ["--base-epochs", "1", "--replay-size", "100", "--negatives", "20", "--checkpoint-every", "1"]


def test_the_others_end_and_two_continue(found: Callable[[str], dict[int, list[Any]]]) -> None:
    groups = found("interrupted")
    survivors = groups[4]
    assert len(survivors) == 3
    for survivor in survivors:
        assert "another process has ended or does not respond" in survivor["message"]
        assert survivor["at"] - survivor["killed"] < 60
    whole = groups[1][0]["result"]
    for process in groups[2]:
        assert 0 < process["steps before"] < len(whole["steps"])  # in the middle of the run
        result = process["result"]
        assert result["alpha"] == whole["alpha"]
        for mine, theirs in zip(whole["history"], result["history"], strict=True):
            assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-6)


def torchrun(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs ``torchrun`` on this machine; ``--standalone`` finds a free port."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return subprocess.run(
        [*command, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow  # imports the package seven times; the same as above through the command line
def test_killed_with_four_resumed_with_two(tmp_path: Path) -> None:
    from tkg_incremental.cli import main

    run_dir, root = tmp_path / "run", tmp_path / "data"
    train = ["train", *FLAGS, *SMALL, "--root", str(root), "--run-dir"]
    killed = torchrun(4, str(TESTS / "killed_process.py"), "2", "9", str(tmp_path / "killed"), *train, str(run_dir))
    ended = time.time()
    assert killed.returncode != 0
    assert "Signal 9 (SIGKILL)" in killed.stderr  # what torchrun reports as the first failure
    assert "another process has ended" in killed.stderr or "told to end" in killed.stderr
    assert f"torchrun --nproc-per-node 4 -m tkg_incremental train --resume --run-dir {run_dir}" in killed.stderr
    assert "tkg_incremental/" not in killed.stderr  # no traceback but that of torchrun
    assert ended - (tmp_path / "killed").stat().st_mtime < 60
    assert not (run_dir / "metrics.json").exists() or len(Result.load(run_dir / "metrics.json").steps) < 6

    resumed = torchrun(2, "-m", "tkg_incremental", "train", "--resume", "--run-dir", str(run_dir))
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.count("Written to") == 1  # by one process
    assert main([*train, str(tmp_path / "whole")]) == 0
    found, whole = (Result.load(folder / "metrics.json") for folder in (run_dir, tmp_path / "whole"))
    assert len(found.steps) == len(whole.steps) == 6
    for mine, other in zip(whole.steps, found.steps, strict=True):
        for name in ("C@10", "A@10", "DF@10", "RRD", "MRR"):
            # 400 ranks: a sum in another order may change one of them by one.
            assert other[name] == pytest.approx(mine[name], rel=1e-3, abs=0.3), (mine["time"], name)
    for one, two in zip(whole.history, found.history, strict=True):
        validation = {name for name in one if name.startswith("val")}
        assert {k: v for k, v in two.items() if k not in validation} == pytest.approx(
            {k: v for k, v in one.items() if k not in validation}, rel=1e-4
        )
