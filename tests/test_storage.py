from __future__ import annotations

import os
import pickle
import signal
import stat
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tkg_incremental import storage
from tkg_incremental.storage import HEADER, CorruptFileError, atomic_write, load_verified, save_verified


def test_atomic_write(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with atomic_write(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with atomic_write(str(path)) as file:
        file.write(b"second")
        file.flush()
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_atomic_write_keeps_the_old_file(tmp_path: Path, kind: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(kind), atomic_write(path) as file:
        file.write(b"new")
        raise kind
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_atomic_write_removes_the_temporary_file_when_the_rename_fails(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError), atomic_write(path) as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_writers_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_write(path) as first, atomic_write(path) as second:
        first.write(b"a" * 10)
        second.write(b"b")
    assert path.read_bytes() == b"a" * 10


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_atomic_write_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "file") as file:
            file.write(b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_order_of_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content reaches the disk before the name, and the name before the block is left."""
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(descriptor: int) -> None:
        events.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        fsync(descriptor)

    def spy_replace(source: Path, target: Path) -> None:
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    with atomic_write(tmp_path / "file") as file:
        file.write(b"x")
    assert events == ["sync file", "rename"] + ["sync folder"] * (os.name == "posix")


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    save_verified({"step": 1}, path)
    code = (
        "import sys, os, signal\n"
        "from tkg_incremental.storage import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'half of it'); file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert load_verified(path) == {"step": 1}


@pytest.mark.parametrize("version", [storage.TORCH, (2, 4)], ids=["torch", "torch 2.4"])
def test_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]) -> None:
    monkeypatch.setattr(storage, "TORCH", version)
    obj = {
        "weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
        "empty": torch.empty(0, 4, dtype=torch.long),
        "names": ["a", "ü"],
        "nested": OrderedDict(step=(1, 2.5, None, True)),
    }
    save_verified(obj, tmp_path / "state.pt")
    loaded = load_verified(tmp_path / "state.pt")
    assert torch.equal(loaded.pop("weight"), obj.pop("weight"))
    assert torch.equal(loaded.pop("empty"), obj.pop("empty"))
    assert loaded == obj


def test_optimizer_state_round_trip(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    save_verified(optimizer.state_dict(), tmp_path / "state.pt")
    assert str(load_verified(tmp_path / "state.pt")) == str(optimizer.state_dict())


def test_failed_save_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    save_verified([1], path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        save_verified([lambda: None], path)
    assert load_verified(path) == [1]
    assert os.listdir(tmp_path) == ["state.pt"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("storage") / "good.pt"
    save_verified({"x": torch.arange(100)}, path)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_flipped_bit_is_detected(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(good.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1) | st.integers(0, HEADER.size - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    bad = tmp_path / "bad.pt"
    bad.write_bytes(content)
    with pytest.raises(CorruptFileError):
        load_verified(bad)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_truncation_is_detected(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = good.read_bytes()
    length = data.draw(st.integers(0, len(content) - 1) | st.integers(0, HEADER.size))
    bad = tmp_path / "bad.pt"
    bad.write_bytes(content[:length])
    with pytest.raises(CorruptFileError, match="truncated|payload should have"):
        load_verified(bad)


def test_trailing_bytes_are_detected(good: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.pt").write_bytes(good.read_bytes() + b"\0")
    with pytest.raises(CorruptFileError, match="payload should have"):
        load_verified(tmp_path / "bad.pt")


def test_foreign_files_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "plain.pt"
    torch.save([1], path)
    with pytest.raises(CorruptFileError, match="not written by this package") as caught:
        load_verified(path)
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # it may cross processes


def test_other_version_is_named(good: Path, tmp_path: Path) -> None:
    magic, version, length, digest = HEADER.unpack(good.read_bytes()[: HEADER.size])
    path = tmp_path / "later.pt"
    path.write_bytes(HEADER.pack(magic, version + 1, length, digest) + good.read_bytes()[HEADER.size :])
    with pytest.raises(CorruptFileError, match=rf"version {version} is expected \(got {version + 1}\)"):
        load_verified(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_verified(tmp_path / "none.pt")


class _Surprise:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


def test_code_is_never_run(tmp_path: Path) -> None:
    save_verified({"x": _Surprise()}, tmp_path / "state.pt")
    with pytest.raises(CorruptFileError, match="more than tensors and plain values"):
        load_verified(tmp_path / "state.pt")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
def test_saving_holds_no_second_copy(tmp_path: Path) -> None:
    code = (
        "import sys, torch\n"
        "from tkg_incremental.storage import save_verified, load_verified\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(line for line in lines if line.startswith('VmHWM')).split()[1]) >> 10\n"
        "save_verified([torch.zeros(8)], sys.argv[1]); load_verified(sys.argv[1])\n"  # for the lazy imports
        "x = torch.zeros(64 << 20, dtype=torch.uint8).add_(1)\n"
        "before = peak()\n"
        "save_verified({'x': x}, sys.argv[1])\n"
        "saved = peak()\n"
        "del x; load_verified(sys.argv[1])\n"
        "print(saved - before, peak() - before)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.pt")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    saving, loading = map(int, output.split())
    assert saving < 32  # MiB, of 64
    assert loading < 32
