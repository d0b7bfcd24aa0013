"""Runs that were killed at any moment and resumed end with the same bits as uninterrupted runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tiny_run import write_mirror

from tkg_incremental.datasets.download import MIRROR_VARIABLE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A real server, so that downloads can be interrupted."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=write_mirror(tmp_path / "mirror")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def kill_runs(folder: Path, server: str, count: int, seed: int) -> list[dict[str, Any]]:
    command = [sys.executable, str(Path(__file__).with_name("crash_worker.py")), str(folder), str(count), str(seed)]
    environment = {**os.environ, MIRROR_VARIABLE: server, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report: list[dict[str, Any]] = json.loads(done.stdout)
    for attempt in report:
        assert attempt["codes"][0] == -signal.SIGKILL, (attempt, done.stderr)
        assert set(attempt["codes"]) <= {-signal.SIGKILL, 0}, (attempt, done.stderr)
        assert attempt["end"] == 0, (attempt, done.stderr)
        assert attempt["same"], attempt
        assert attempt["halves"] == []
    return report


def test_killed_in_every_phase(tmp_path: Path, server: str) -> None:
    report = kill_runs(tmp_path / "runs", server, count=5, seed=0)
    first = {attempt["moments"][0][0] for attempt in report}
    assert first == {"download", "process", "batch", "checkpoint", "results"}


@pytest.mark.slow
def test_killed_at_many_moments(tmp_path: Path, server: str) -> None:
    report = kill_runs(tmp_path / "runs", server, count=30, seed=1)
    assert len({attempt["case"] for attempt in report}) == 6
    assert sum(len(attempt["moments"]) for attempt in report) > 30
