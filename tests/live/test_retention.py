"""Old releases leave the disk; what is left can answer, and what is gone is named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from graphs import commit, small_graph, small_tables, state_of
from small_live import succession

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.live import Change, GraphFolder
from tkg_incremental.live.graph_toml import read_keep
from tkg_incremental.report.history import render_history


def keep(path: Path, number: int) -> None:
    file = path / "graph.toml"
    text = file.read_text()
    assert text.count("keep = 30") == 1
    file.write_text(text.replace("keep = 30", f"keep = {number}"))


def add_releases(folder: GraphFolder, count: int, rows: int = 40) -> None:
    """Releases with one changed row each, which build on each other."""
    for _ in range(count):
        step, tables = (folder.store.clock or 0) + 1, small_tables(rows)
        tables["entity"][0] = step
        folder.store.record([Change("add", f"new {step}", "leads", "R&D", step)], step, str(step))
        commit(folder, tables, {"entity": torch.tensor([0])}, clock=step)


def folder_with(path: Path, number: int) -> GraphFolder:
    small_graph(path, rows=40).close()
    keep(path, number)
    return GraphFolder(path, write=True)


def test_the_newest_releases_stay_with_what_they_build_on(tmp_path: Path) -> None:
    with folder_with(tmp_path / "graph", 3) as folder:
        states = [state_of(folder.store)]
        for number in range(1, 13):
            add_releases(folder, 1)
            states.append(state_of(folder.store))
            present = folder.releases.numbers()
            assert set(range(max(0, number - 2), number + 1)) <= set(present)
            assert len(present) <= 6  # those that are kept, and at most a chain of three before them
            for one in present:
                assert folder.releases.load_release(one)["entity"][0, 0] == (
                    10 + one if one else small_tables()["entity"][0, 0]
                )
            # A chain has at most three releases, however few rows change.
            assert len(folder.releases.table_chain(number)) <= 3
        assert folder.pruned() == [n for n in range(13) if n not in folder.releases.numbers()]
        assert [release.number for release in folder.store.releases()] == list(range(13))
        oldest = folder.releases.numbers()[0]
        folder.release(oldest)
        assert state_of(folder.store) == states[oldest]
        folder.release(12)
        assert state_of(folder.store) == states[12]


def test_the_current_release_stays_after_a_rollback(tmp_path: Path) -> None:
    with folder_with(tmp_path / "graph", 2) as folder:
        add_releases(folder, 8)
        back = folder.releases.numbers()[-2]
        folder.release(back)
        add_releases(folder, 1)
        assert folder.releases.manifest(9).parent == back
        folder.release(back)
        assert back in folder.releases.numbers()
        assert folder.releases.load_release(back)["entity"][0, 0] == 10 + back
        add_releases(folder, 6)
        assert [update.id for update in folder.store.updates("applied")][-1] == folder.store.updates()[-1].id


def test_zero_keeps_all(tmp_path: Path) -> None:
    with folder_with(tmp_path / "graph", 0) as folder:
        assert folder.releases.keep == 0
        add_releases(folder, 8)
        assert folder.releases.numbers() == list(range(9))
        assert folder.pruned() == []


class Stopped(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("moment", ["rename", "rmtree"])
def test_stopped_while_pruning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Whatever is left can answer, and the next writer removes the rest."""
    path = tmp_path / "graph"
    with folder_with(path, 0) as folder:
        add_releases(folder, 12)
    file = path / "graph.toml"
    file.write_text(file.read_text().replace("keep = 0", "keep = 2"))
    calls: list[Path] = []
    original = os.rename if moment == "rename" else shutil.rmtree

    def stop(place: Any, *args: Any, **kwargs: Any) -> None:
        calls.append(Path(place))
        if len(calls) == 3:
            raise Stopped
        original(place, *args, **kwargs)

    with GraphFolder(path, write=True) as folder, monkeypatch.context() as patch:
        patch.setattr(f"tkg_incremental.live.releases.{'os' if moment == 'rename' else 'shutil'}.{moment}", stop)
        # All twelve build on release 0, so a full one lets them go.
        tables = small_tables(40)
        folder.store.record([Change("add", "x", "leads", "R&D", 23)], 23, "x")
        commit(folder, tables, None, clock=23)
        folder.store.record([Change("add", "y", "leads", "R&D", 24)], 24, "y")
        with pytest.raises(Stopped):
            commit(folder, tables, {}, clock=24)
    with GraphFolder(path) as folder:
        assert folder.releases.current() == folder.store.release == 14  # the commit was before
        left = folder.releases.numbers()
        assert {0, 13, 14} < set(left)
        for number in left:
            folder.releases.load_release(number)
    with GraphFolder(path, write=True) as folder:
        assert list(path.rglob("*.tmp")) == []
        folder.release(14)
        assert folder.releases.numbers() == [13, 14]


def test_nothing_is_removed_if_a_manifest_is_damaged(tmp_path: Path) -> None:
    with folder_with(tmp_path / "graph", 0) as folder:
        add_releases(folder, 5)
        (folder.releases.folder(4) / "manifest.json").write_text("{")
        folder.releases.keep = 2
        folder.releases.prune()
        assert folder.releases.numbers() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("value", "said"), [("1", "must be 0 or at least 2 (got 1)"), ("-3", "(got -3)")])
def test_wrong_numbers(tmp_path: Path, value: str, said: str) -> None:
    small_graph(tmp_path / "graph").close()
    keep(tmp_path / "graph", int(value))
    with pytest.raises(ValueError) as error:
        GraphFolder(tmp_path / "graph")
    assert said in str(error.value)
    assert read_keep({"keep": 2}) == 2


def test_a_live_graph(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pruned releases are listed, and neither answer nor can be rolled back to; erasure and updates go on."""
    keep(path, 2)
    with LiveGraph(path) as graph, LiveGraph(path) as reader:
        assert reader.query(None, "leads", "R&D")[0].name == "leader 0"
        for number in range(1, 5):
            assert graph.update(**succession(number)).state == "released"
            assert reader.query(None, "leads", "R&D")[0].name == f"leader {number}"
        pruned = graph.folder.pruned()
        assert pruned[0] == 0
        assert [release.number for release in graph.history()] == list(range(5))
        with pytest.raises(ValueError, match=r"release 0 was removed: \[releases\] of graph.toml keeps 2; the oldest"):
            graph.rollback(0)
        with pytest.raises(ValueError, match="release 0 was removed"):
            graph.query(None, "leads", "R&D", as_of=0)
        assert graph.query(None, "leads", "R&D", as_of=3)[0].name == "leader 3"
        assert "no longer on disk" in render_history(graph)
        assert graph.erase("leader 2") == []
        assert graph.query(None, "leads", "R&D")[0].name == "leader 4"
        graph.rollback(4)
        assert graph.update(**succession(5)).state == "released"
    assert main(["rollback", str(path), "0"]) == 3
    assert "release 0 was removed" in capsys.readouterr().err
    assert main(["rollback", str(path), "99"]) == 3
    assert "(got 99)" in capsys.readouterr().err
    assert main(["history", str(path)]) == 0
    assert "pruned" in capsys.readouterr().out
    assert main(["history", str(path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["releases"]
    assert listed[0]["pruned"] is True
    assert listed[-1]["pruned"] is False
