"""What may happen to an update: a kill, a second writer, readers, damage, a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest
from small_live import succession

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.live import GraphFolderError, GraphLockedError
from tkg_incremental.storage import CorruptFileError


@pytest.mark.parametrize("count", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_random_moments(path: Path, count: int) -> None:
    folder = Path(__file__).parent
    places = [str(folder.parents[1]), str(folder), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(places)}
    worker = [sys.executable, str(folder / "killed_worker.py"), str(path), str(count), "7"]
    done = subprocess.run(worker, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert before + after == count
    assert before > 0


def test_the_second_writer_is_told_who_writes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LiveGraph(path, write=True), LiveGraph(path) as other:
        assert other.query(None, "leads", "R&D")[0].name == "leader 0"  # readers do not wait
        with pytest.raises(GraphLockedError, match=f"process {os.getpid()} on"):
            other.update(**succession(1))
        assert main(["update", str(path)]) == 1
        assert f"is being written to by process {os.getpid()} on" in capsys.readouterr().err
    with LiveGraph(path) as graph:
        assert graph.update(**succession(1)).state == "released"


def test_readers_see_one_release_or_the_other(path: Path) -> None:
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with LiveGraph(path) as graph:
                for number in range(1, 4):
                    assert graph.update(**succession(number)).state == "released"
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    seen = []
    with LiveGraph(path) as reader:
        assert reader.query(None, "leads", "R&D")[0].name == "leader 0"
        writer.start()
        while writer.is_alive():
            answers = reader.query(None, "leads", "R&D")
            known = [answer.name for answer in answers if answer.known]
            assert known == [answers[0].name]  # never both leaders, never none
            seen.append(int(known[0].split()[1]))
        writer.join()
        assert not failures, failures
        assert reader.query(None, "leads", "R&D")[0].name == "leader 3"
    assert seen == sorted(seen)


def test_damaged_release(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables,) = (path / "releases" / "0000").glob("*.safetensors")
    data = bytearray(tables.read_bytes())
    data[-5] ^= 1
    tables.write_bytes(data)
    with LiveGraph(path) as graph, pytest.raises(CorruptFileError, match="its checksum is wrong") as error:
        graph.query(None, "leads", "R&D")
    assert str(tables) in str(error.value)
    assert main(["query", str(path), "?", "leads", "R&D"]) == 3
    assert str(tables) in capsys.readouterr().err
    # An update must not build on it either.
    with LiveGraph(path) as graph, pytest.raises(CorruptFileError):
        graph.update(**succession(1))


def test_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, LiveGraph(path) as graph:
        patch.setattr("tkg_incremental.live.releases.write_tensors", full)
        with pytest.raises(OSError, match="No space left"):
            graph.update(**succession(1))
        assert (graph.current, graph.query(None, "leads", "R&D")[0].name) == (0, "leader 0")
        assert main(["update", str(path)]) == 3
        assert "No space left" in capsys.readouterr().err
    with LiveGraph(path) as graph:
        assert graph.update(**succession(1)).state == "released"  # what was pending is taken up
        assert [update.state for update in graph.folder.store.updates()] == ["applied"]
        assert graph.query(None, "leads", "R&D")[0].name == "leader 1"


def test_a_read_only_medium(path: Path) -> None:
    """Questions are answered without a file of their own; an update says why it cannot be."""
    code = """if True:
        import sys
        from tkg_incremental.cli import main
        for words in (["query", sys.argv[1], "?", "leads", "R&D"], ["update", sys.argv[1]]):
            print("exit code", main(words))"""
    command = [sys.executable, "-c", code]
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 77; exec "$@" "$0"'
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    run = ["unshare", "-rm", "bash", "-c", script, str(path), *command]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr}")
    answered, refused = done.stdout.split("exit code 0")
    assert "leader 0" in answered
    assert "exit code 3" in refused
    assert "Read-only file system" in done.stderr


def test_a_folder_without_the_right_to_write(path: Path) -> None:
    for part in [path, *path.rglob("*")]:
        part.chmod(0o555 if part.is_dir() else 0o444)
    for part in path.parents:
        if not part.stat().st_mode & 0o001:  # pytest's folders are for their owner alone
            part.chmod(part.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:  # root may write everywhere
        code = 1
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            try:
                LiveGraph(path)
            except GraphFolderError as error:
                code = 0 if "readers need the right to write to its folder, too" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    path.chmod(0o755)
