"""One commit point: killed before it, nothing has happened; after it, all has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphs import commit, small_graph, small_tables, state_of

from tkg_incremental.live import (
    Change,
    GraphFolder,
    GraphFolderError,
    GraphLockedError,
)

ROOT = Path(__file__).parent.parent.parent
WORKER = Path(__file__).with_name("crash_worker.py")
ADD = [Change("add", "Dan", "leads", "R&D", 11)]


def run_worker(path: Path, count: int, seed: int) -> tuple[int, int]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(WORKER), str(path), str(count), str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    kills, commits = map(int, done.stdout.split())
    return kills, commits


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    kills, commits = run_worker(tmp_path / "graph", 6, 0)
    assert kills == 6
    assert commits > 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_very_often(tmp_path: Path) -> None:
    for seed in range(1, 5):
        run_worker(tmp_path / str(seed), 250, seed)


STOPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "writing": lambda patch: patch.setattr("tkg_incremental.live.manifest.Release.write", _stop),
    "rename": lambda patch: patch.setattr("tkg_incremental.live.releases.os.rename", _stop),
    "current": lambda patch: patch.setattr("tkg_incremental.live.releases.ReleaseFolder.set_current", _stop),
    "store": lambda patch: patch.setattr("tkg_incremental.live.store.FactStore.sync", _stop),
}


class Stopped(BaseException):
    """Stands for the end of the process."""


def _stop(*args: Any, **kwargs: Any) -> None:
    raise Stopped


@pytest.mark.parametrize("moment", STOPS)
def test_stopped_at_each_step(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "graph"
    folder = small_graph(path)
    before = state_of(folder.store)
    folder.store.record(ADD, 11, "h")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        STOPS[moment](patch)
        commit(folder, small_tables(6), {}, clock=11)
    folder.close()
    committed = moment == "store"
    for write in (False, True):
        with GraphFolder(path, write=write) as again:
            assert (state_of(again.store) != before) == committed
            assert again.releases.current() == again.store.release == int(committed)
            assert [update.state for update in again.store.updates()] == ["applied" if committed else "pending"]
            assert again.store.clock == (11 if committed else 10)
    with GraphFolder(path, write=True) as again:
        assert again.releases.numbers() == ([0, 1] if committed else [0])


def test_two_writers(tmp_path: Path) -> None:
    with small_graph(tmp_path / "graph") as folder:
        expected = rf"is being written to by process {os.getpid()} on .+, since \d{{4}}-"
        with pytest.raises(GraphLockedError, match=expected):
            GraphFolder(tmp_path / "graph", write=True)
        if hasattr(os, "fork"):
            child = os.fork()
            if child == 0:
                try:
                    GraphFolder(tmp_path / "graph", write=True)
                except GraphLockedError as error:
                    os._exit(7 if re.search(expected, str(error)) else 1)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        folder.store.record(ADD, 11, "h")
        with GraphFolder(tmp_path / "graph") as reader, folder.store.transaction():  # readers do not wait
            assert reader.store.num_facts == 5
            with pytest.raises(GraphFolderError, match="was opened for reading"):
                commit(reader, {}, None, clock=1)
    GraphFolder(tmp_path / "graph", write=True).close()


def test_a_reader_stays_with_its_release(tmp_path: Path) -> None:
    with small_graph(tmp_path / "graph") as folder, GraphFolder(tmp_path / "graph") as reader:
        number = reader.store.release
        assert number == 0
        folder.store.record(ADD, 11, "h")
        commit(folder, small_tables(6), {}, clock=11)
        assert reader.store.num_facts == 6
        revision = reader.store.revision_of(number)
        rel, tail = reader.store.relations.find("leads"), reader.store.entities.find("R&D")
        assert rel is not None
        assert len(reader.store.answers(None, rel, tail, at=11)) == 2
        assert len(reader.store.answers(None, rel, tail, at=11, revision=revision)) == 1


def test_rollback_and_forward(tmp_path: Path) -> None:
    with small_graph(tmp_path / "graph") as folder:
        states = [state_of(folder.store)]
        for step in (11, 12):
            folder.store.record([Change("add", f"new {step}", "leads", "R&D", step)], step, str(step))
            commit(folder, small_tables(step), {}, clock=step)
            states.append(state_of(folder.store))
        for number in (0, 2, 1, 0):
            folder.release(number)
            assert state_of(folder.store) == states[number]
            assert folder.store.clock == 10 + number
        folder.store.record(ADD, 13, "branch")
        assert commit(folder, small_tables(20), {}, clock=13).number == 3
        assert folder.releases.manifest(3).parent == 0
        assert len(folder.releases.load_release(3)["entity"]) == 20


def test_a_damaged_release_does_not_prevent_a_rollback(tmp_path: Path) -> None:
    with small_graph(tmp_path / "graph") as folder:
        folder.store.record(ADD, 11, "h")
        commit(folder, small_tables(6), {}, clock=11)
        (folder.releases.folder(1) / "manifest.json").write_text("{")
    with GraphFolder(tmp_path / "graph", write=True) as folder:
        folder.release(0)
        assert folder.store.num_facts == 5
    (tmp_path / "graph" / "current").unlink()
    with GraphFolder(tmp_path / "graph", write=True) as folder:
        assert folder.releases.current() == 0


@pytest.mark.parametrize("size", [100, 2_000, 20_000, 60_000])
def test_a_full_disk(tmp_path: Path, size: int) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "graph"
    with small_graph(path) as folder:
        before = state_of(folder.store)
        folder.store.record(ADD, 11, "h")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                commit(folder, small_tables(1000), None, clock=11)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert folder.releases.current() == 0
        assert state_of(folder.store) == before
        assert list(path.rglob("*.tmp")) == []
        assert commit(folder, small_tables(1000), None, clock=11).number == 1
        assert folder.store.num_facts == 6


def test_folders_that_are_no_graphs(tmp_path: Path) -> None:
    with pytest.raises(GraphFolderError, match="holds no graph"):
        GraphFolder(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(GraphFolderError, match="must be empty or missing"):
        GraphFolder.create(tmp_path, "day")
    path = tmp_path / "graph"
    GraphFolder.create(
        path, "day", {"gate": {"kept": 0.9, "name": 'a "b" \\ ü', "on": True}, "graph": {"k": 3}}
    ).close()
    with pytest.raises(
        GraphFolderError, match="must be empty or missing; it is a live graph: update it, or remove it first"
    ):
        GraphFolder.create(path, "day")
    (tmp_path / "model.pt").touch()
    with pytest.raises(GraphFolderError, match="it is a run: make a graph of it with create --from-run"):
        GraphFolder(tmp_path)
    with GraphFolder(path) as folder:
        assert folder.settings["gate"] == {"kept": 0.9, "name": 'a "b" \\ ü', "on": True}
        assert folder.settings["graph"] == {"unit": "day", "k": 3}
        assert "GraphFolder(" in repr(folder)
    (path / "graph.toml").write_text("unit = = day")
    with pytest.raises(ValueError, match=r"graph.toml.*line 1"):
        GraphFolder(path)
    (path / "graph.toml").write_text("")
    (path / "facts.db").write_bytes(b"no database" * 100)
    with pytest.raises(GraphFolderError, match="file is not a database"):
        GraphFolder(path, write=True)


def test_a_release_reads_the_manifests_of_new_releases_alone(tmp_path: Path) -> None:
    """An update must not cost more with each release before it."""
    with small_graph(tmp_path / "graph") as folder:
        for step in (11, 12, 13):
            folder.store.record([Change("add", f"new {step}", "leads", "R&D", step)], step, str(step))
            commit(folder, small_tables(step), {}, clock=step)
        (folder.releases.folder(1) / "manifest.json").write_text("{")  # not read any more
        folder.release(2)
        folder.store.record(ADD, 14, "h")
        assert commit(folder, small_tables(20), None, clock=14).parent == 2
        assert [manifest.number for manifest in folder.releases.chain(4, until={2, 3})] == [2, 4]
        assert [release.updates for release in folder.store.releases()] == [(), (1,), (2,), (3,), (4,)]
