"""Real downloads, from a server on the loopback interface that misbehaves on demand."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tkg_incremental.datasets import download as module
from tkg_incremental.datasets.download import MIRROR_VARIABLE, DownloadError, download

# Several times the chunk size of the downloader, so that a broken transfer leaves a part behind.
CONTENT = random.Random(0).randbytes(400_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILES = {"data/train.txt": SHA256}


class Server(ThreadingHTTPServer):
    """Serves ``content`` by path. Each request takes the next of ``faults``, and leaves a line in ``log``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = {"/data/train.txt": CONTENT}
        self.faults: list[str] = []
        self.log: list[tuple[str, str | None]] = []  # (path, Range header)
        self.supports_range = True
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.log.append((self.path, asked))
        fault = self.server.faults.pop(0) if self.server.faults else ""
        body = self.server.content.get(self.path)
        if fault.isdigit() or body is None:
            return self.send_error(int(fault or 404))
        if fault == "stall":  # neither an answer nor a closed connection
            self.server.released.wait(20)
            return None
        if fault == "garbage":
            body = bytes(len(body))
        start = 0
        if asked and self.server.supports_range:
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])  # type: ignore[index]
            if start >= len(body):
                return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if fault != "unknown length":
            self.send_header("Content-Length", str(len(body) - start))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if fault in ("break", "stall half-way"):
            self.wfile.write(body[start : start + len(body) // 2])
            self.wfile.flush()
            if fault == "stall half-way":
                self.server.released.wait(20)
            self.close_connection = True
            return None
        if fault == "slow":
            time.sleep(0.5)
        self.wfile.write(body[start:])
        return None

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's settings may decide where the bytes come from."""
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")


@pytest.fixture
def pauses() -> list[float]:
    """What a download would have slept."""
    return []


def test_fetches_and_then_leaves_alone(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "raw"
    download(FILES, folder, server.url)
    assert (folder / "train.txt").read_bytes() == CONTENT
    assert server.log == [("/data/train.txt", None)]
    assert not list(folder.glob("*.part"))

    download(FILES, folder, server.url)
    assert len(server.log) == 1


def test_only_missing_or_wrong_files_are_fetched(server: Server, tmp_path: Path) -> None:
    bodies = {name: name.encode() * 10 for name in ("train", "valid", "test")}
    server.content = {f"/wiki%20%231/{name}": body for name, body in bodies.items()}
    files = {f"wiki #1/{name}": hashlib.sha256(body).hexdigest() for name, body in bodies.items()}
    (tmp_path / "train").write_bytes(bodies["train"])
    (tmp_path / "valid").write_bytes(b"old")

    download(files, tmp_path, server.url.rstrip("/"))  # the last slash may be left out
    assert sorted(path for path, _ in server.log) == ["/wiki%20%231/test", "/wiki%20%231/valid"]
    assert {name: (tmp_path / name).read_bytes() for name in bodies} == bodies


def test_uppercase_checksum(server: Server, tmp_path: Path) -> None:
    download({"data/train.txt": SHA256.upper()}, tmp_path, server.url)
    assert (tmp_path / "train.txt").exists()


def test_empty_file(server: Server, tmp_path: Path) -> None:
    server.content["/empty"] = b""
    download({"empty": hashlib.sha256().hexdigest()}, tmp_path, server.url)
    assert (tmp_path / "empty").read_bytes() == b""


def test_404_is_not_retried(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    with pytest.raises(DownloadError, match=r"404.*\n.*gone\.txt") as caught:
        download({"data/gone.txt": SHA256}, tmp_path, server.url, sleep=pauses.append)
    assert str(tmp_path) in str(caught.value)
    assert len(server.log) == 1
    assert pauses == []
    assert not (tmp_path / "gone.txt").exists()


@pytest.mark.parametrize("status", ["503", "500", "429"])
def test_server_errors_are_retried(server: Server, tmp_path: Path, pauses: list[float], status: str) -> None:
    server.faults = [status, status]
    download(FILES, tmp_path, server.url, sleep=pauses.append)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert pauses == [1, 2]


def test_gives_up_after_tries(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.faults = ["503"] * 10
    with pytest.raises(DownloadError, match="503.*tried 3 times"):
        download(FILES, tmp_path, server.url, tries=3, sleep=pauses.append)
    assert len(server.log) == 3
    assert pauses == [1, 2]


def test_broken_connection_is_resumed(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.faults = ["break"]
    download(FILES, tmp_path, server.url, sleep=pauses.append)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert pauses == [1]
    (_, first), (_, second) = server.log
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= len(CONTENT) // 2


def test_resumes_in_a_later_call(server: Server, tmp_path: Path) -> None:
    server.faults = ["break"]
    with pytest.raises(DownloadError):
        download(FILES, tmp_path, server.url, tries=1)
    assert not (tmp_path / "train.txt").exists()
    done = (tmp_path / "train.txt.part").stat().st_size
    assert done > 0

    download(FILES, tmp_path, server.url)
    assert server.log[-1] == ("/data/train.txt", f"bytes={done}-")
    assert (tmp_path / "train.txt").read_bytes() == CONTENT


def test_server_without_ranges(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.supports_range = False
    server.faults = ["break"]
    download(FILES, tmp_path, server.url, sleep=pauses.append)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert len(server.log) == 2  # started anew, and not because of a wrong checksum


def test_unknown_length(server: Server, tmp_path: Path) -> None:
    server.faults = ["unknown length"]
    download(FILES, tmp_path, server.url)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("fault", ["stall", "stall half-way"])
def test_timeout(server: Server, tmp_path: Path, pauses: list[float], fault: str) -> None:
    server.faults = [fault]
    start = time.monotonic()
    download(FILES, tmp_path, server.url, timeout=0.3, sleep=pauses.append)
    assert time.monotonic() - start < 10  # the server itself would keep us for 20 s
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert pauses == [1]


def test_wrong_checksum_once(server: Server, tmp_path: Path) -> None:
    server.faults = ["garbage"]
    download(FILES, tmp_path, server.url)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert server.log == [("/data/train.txt", None)] * 2  # from the start, not resumed


def test_wrong_checksum_twice(server: Server, tmp_path: Path) -> None:
    wrong = "0" * 64
    with pytest.raises(DownloadError, match=rf"data/train\.txt.*expected {wrong}, got {SHA256}"):
        download({"data/train.txt": wrong}, tmp_path, server.url)
    assert len(server.log) == 2
    assert {path.name for path in tmp_path.iterdir()} <= {".download.lock"}


def test_a_wrong_file_survives_a_failed_download(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"edited by hand")
    server.faults = ["404"]
    with pytest.raises(DownloadError):
        download(FILES, tmp_path, server.url)
    assert (tmp_path / "train.txt").read_bytes() == b"edited by hand"


@pytest.mark.parametrize("supports_range", [True, False])
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(CONTENT, id="whole"),
        pytest.param(CONTENT + b"more", id="longer"),
        pytest.param(bytes(100_000), id="corrupt"),
        pytest.param(bytes(len(CONTENT)), id="corrupt and as long"),
        pytest.param(b"", id="empty"),
    ],
)
def test_old_part_files(server: Server, tmp_path: Path, part: bytes, supports_range: bool) -> None:
    server.supports_range = supports_range
    (tmp_path / "train.txt.part").write_bytes(part)
    download(FILES, tmp_path, server.url)
    assert (tmp_path / "train.txt").read_bytes() == CONTENT
    assert not (tmp_path / "train.txt.part").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_processes(server: Server, tmp_path: Path) -> None:
    server.faults = ["slow"]  # long enough for the other one to come to the lock
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(2)

    def fetch() -> None:
        ready.wait(60)  # both are let go at the same moment
        download(FILES, tmp_path, server.url)
        assert (tmp_path / "train.txt").read_bytes() == CONTENT

    processes = [context.Process(target=fetch) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(server.log) == 1


def test_folder_mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "data").mkdir(parents=True)
    (mirror / "data" / "train.txt").write_bytes(CONTENT)
    monkeypatch.setenv(MIRROR_VARIABLE, str(mirror))
    download(FILES, tmp_path / "raw", server.url)
    assert (tmp_path / "raw" / "train.txt").read_bytes() == CONTENT
    assert server.log == []


def test_folder_mirror_below_home(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.txt").write_bytes(CONTENT)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv(MIRROR_VARIABLE, "~")
    download(FILES, tmp_path / "raw", server.url)
    assert server.log == []


def test_folder_mirror_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.txt").write_bytes(b"something else")
    monkeypatch.setenv(MIRROR_VARIABLE, str(tmp_path))
    with pytest.raises(DownloadError, match=f"expected {SHA256}"):
        download(FILES, tmp_path / "raw", "http://127.0.0.1:1/")
    assert not (tmp_path / "raw" / "train.txt").exists()


def test_folder_mirror_lacks_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DownloadError, match=rf"(?s)nowhere.*{MIRROR_VARIABLE}.*set to '.*nowhere'"):
        download(FILES, tmp_path / "raw", "http://127.0.0.1:1/")


def test_url_mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, server.url + "copy/")
    server.content = {"/copy/data/train.txt": CONTENT}
    download(FILES, tmp_path, "http://127.0.0.1:1/")
    assert server.log == [("/copy/data/train.txt", None)]


def test_offline(tmp_path: Path, pauses: list[float]) -> None:
    with socket.socket() as closed:  # a port that nobody listens on
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        files = {"data/train.txt": SHA256, "data/valid.txt": SHA256}
        with pytest.raises(DownloadError) as caught:
            download(files, tmp_path / "raw", url, sleep=pauses.append)
    assert pauses == [1, 2, 4]  # once, not once for each file
    message = str(caught.value)
    for part in ("train.txt", "valid.txt", str(tmp_path / "raw"), MIRROR_VARIABLE, "is not set", url):
        assert part in message
    # One error: the long chain of the HTTP libraries is not shown above it.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_complete_folder_needs_neither_network_nor_write_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.txt").write_bytes(CONTENT)
    # Stands for a folder that is read-only (which it never is for root).
    monkeypatch.setattr(module, "FileLock", None)
    download(FILES, tmp_path, "http://127.0.0.1:1/")
    assert os.listdir(tmp_path) == ["train.txt"]


def test_no_progress_bar_without_a_terminal(server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    download(FILES, tmp_path, server.url)
    assert capfd.readouterr() == ("", "")


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tries must be at least 1 \(got 0\)"):
        download(FILES, tmp_path, "http://127.0.0.1:1/", tries=0)
    with pytest.raises(ValueError, match="last part of their paths"):
        download({"a/x": SHA256, "b/x": SHA256}, tmp_path, "http://127.0.0.1:1/")
