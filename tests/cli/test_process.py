"""What takes a process of its own: both ways to start, Ctrl-C, and a reader that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tkg_incremental.cli import main
from tkg_incremental.training import Result

MODULE = [sys.executable, "-m", "tkg_incremental"]
# What is written into a pipe is to be read at once, and one thread is enough for so little.
ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def test_first_run(facts: Path, tmp_path: Path) -> None:
    """Own facts, a run, a question: with nothing but what the help says."""
    flags = ["--epochs", "2", "--hidden-channels", "8", "--run-dir", "runs/mine"]
    trained = run([*MODULE, "train", "--facts", str(facts), *flags], tmp_path)
    assert (trained.returncode, "Written to runs/mine" in trained.stdout) == (0, True)
    script = Path(sys.executable).with_name("tkg-incremental")
    start = [str(script)] if script.exists() else MODULE
    asked = run([*start, "query", "runs/mine", "?", "leads", "Aland", "--at", "2021", "-k", "2"], tmp_path)
    assert (asked.returncode, asked.stderr, len(asked.stdout.splitlines())) == (0, "", 5)
    missing = run([*start, "query", "runs/mine", "?", "leads", "Atlantis", "--at", "2021"], tmp_path)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert missing.stderr.startswith("tkg-incremental query: error: no entity is called 'Atlantis'")


@pytest.fixture(scope="module")
def long_flags(facts: Path) -> list[str]:
    """Of a run long enough to be stopped, with checkpoints inside the steps."""
    flags = ["train", "--facts", str(facts), "--hidden-channels", "8", "--epochs", "15", "--patience", "15"]
    return [*flags, "--checkpoint-every", "4"]


@pytest.fixture(scope="module")
def whole(long_flags: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That run, never stopped."""
    run_dir = tmp_path_factory.mktemp("whole")
    assert main([*long_flags, "--run-dir", str(run_dir)]) == 0
    return run_dir


@pytest.fixture
def heeding_ctrl_c() -> Iterator[None]:
    """Processes in the background ignore it, and so do those they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.usefixtures("heeding_ctrl_c")
@pytest.mark.parametrize(("line", "times"), [pytest.param("TabularTKG(", 1, marks=pytest.mark.slow), ("2018: ", 6)])
def test_interrupted_run_resumes_to_the_same_metrics(
    long_flags: list[str], whole: Path, tmp_path: Path, line: str, times: int
) -> None:
    """Ctrl-C several times is one."""
    run_dir = tmp_path / "in parts"
    command = [*MODULE, *long_flags, "--run-dir", str(run_dir)]
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stderr is not None
    for said in process.stderr:
        if said.startswith(line):
            break
    while not (run_dir / "run.json").exists():  # from here on there is something to resume
        assert process.poll() is None
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, rest = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert f"tkg-incremental train --resume --run-dir '{run_dir}'" in rest
    assert "Traceback" not in rest

    assert main(["train", "--resume", "--run-dir", str(run_dir)]) == 0
    assert _without_seconds(run_dir) == _without_seconds(whole)
    assert (run_dir / "changes.json").read_bytes() == (whole / "changes.json").read_bytes()


def _without_seconds(run_dir: Path) -> Result:
    result = Result.load(run_dir / "metrics.json")
    for step in result.steps:
        del step["epoch_seconds"]
        step.update({name: None for name, value in step.items() if value != value})  # NaN is unlike itself
    result.alpha = {}
    return result


@pytest.mark.skipif(os.name != "posix", reason="pipes that break are a matter of POSIX")
def test_reader_that_goes_away(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*MODULE, "datasets"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()  # long before the first line
    assert process.stderr is not None
    said = process.stderr.read()
    assert (process.wait(), said) == (141, b"")
