"""Fetching the raw files of a dataset: verified, resumed, retried, and safe to run from several processes."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import requests
from filelock import FileLock

from tkg_incremental.progress import progress_bar
from tkg_incremental.storage import replace_durably

__all__ = ["MIRROR_VARIABLE", "DownloadError", "download"]

MIRROR_VARIABLE = "TKG_INCREMENTAL_MIRROR"
CHUNK = 1 << 16

logger = logging.getLogger(__name__)


class DownloadError(RuntimeError):
    """Files could not be fetched; the message says which, why, and what to do without a connection."""


def download(
    files: Mapping[str, str],
    folder: str | os.PathLike[str],
    upstream: str,
    *,
    tries: int = 4,
    timeout: float = 30.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Fetches every file that is missing in a folder, or whose checksum there is wrong.

    The environment variable ``TKG_INCREMENTAL_MIRROR``, a folder or an http(s) URL, replaces ``upstream``.

    Args:
        files: The sha256 of each file by its path below ``upstream``, as in
            ``{"wikidata/train.txt": "4f1d…"}``. It is stored under the last part of the path.
        folder: Where to put the files. Created if missing.
        upstream: The URL that the paths are relative to.
        tries: How often a file is asked for when connections break, time out or the server is out of order.
            A new try goes on where the last one stopped; the pauses between them are 1, 2, 4, … seconds.
        timeout: Seconds without a byte after which a connection counts as broken.
        sleep: Makes the pauses.

    Raises:
        DownloadError: If a file cannot be fetched, or what comes has the wrong checksum twice.
    """
    if tries < 1:
        raise ValueError(f"tries must be at least 1 (got {tries})")
    folder = Path(folder)
    targets = {path: folder / PurePosixPath(path).name for path in files}
    if len(set(targets.values())) < len(targets):
        raise ValueError(f"files must differ in the last part of their paths (got {sorted(files)})")

    def missing() -> list[str]:
        return [path for path, target in targets.items() if _sha256(target) != files[path].lower()]

    if not missing():  # without the lock: a folder that is complete may be read-only
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".download.lock"):
        todo = missing()  # another process may have fetched them while this one waited
        source = os.environ.get(MIRROR_VARIABLE) or upstream
        for i, path in enumerate(todo):
            try:
                _fetch(source, path, targets[path], files[path].lower(), tries, timeout, sleep)
            except DownloadError as error:
                raise DownloadError(_explain(error, todo[i:], folder)) from None


def _explain(error: DownloadError, paths: list[str], folder: Path) -> str:
    names = ", ".join(PurePosixPath(path).name for path in paths)
    mirror = os.environ.get(MIRROR_VARIABLE)
    return (
        f"{error}\n"
        f"Still missing: {names}. Put them in the folder '{folder.resolve()}', or set the environment "
        f"variable {MIRROR_VARIABLE} to a folder or URL that holds {', '.join(paths)} "
        + (f"(it is set to '{mirror}')." if mirror else "(it is not set).")
    )


def _sha256(path: Path) -> str | None:
    """The checksum of a file in hexadecimal, or :obj:`None` if there is no such file."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def _fetch(
    source: str,
    path: str,
    target: Path,
    sha256: str,
    tries: int,
    timeout: float,
    sleep: Callable[[float], None],
) -> None:
    """Brings one file to its place. The part file is kept when the connection fails, to go on from there."""
    part = target.with_name(f"{target.name}.part")
    if target.exists():
        logger.warning("'%s' has the wrong checksum and is downloaded again", target)
    actual = None
    for _ in range(2):  # an old part file may be what was wrong, and the second time there is none
        if source.startswith(("http://", "https://")):
            _fetch_url(f"{source.rstrip('/')}/{quote(path)}", part, tries, timeout, sleep)
        else:
            _copy(Path(source).expanduser() / path, part)
        actual = _sha256(part)
        if actual == sha256:
            replace_durably(part, target)
            logger.info("fetched '%s'", target)
            return
        logger.warning("'%s' came with the wrong checksum %s", path, actual)
        part.unlink(missing_ok=True)
    raise DownloadError(f"'{path}' from {source} has the wrong sha256: expected {sha256}, got {actual}.")


def _copy(source: Path, part: Path) -> None:
    try:
        shutil.copyfile(source, part)
    except (FileNotFoundError, NotADirectoryError):
        raise DownloadError(f"There is no file '{source}'.") from None


def _fetch_url(url: str, part: Path, tries: int, timeout: float, sleep: Callable[[float], None]) -> None:
    for attempt in range(1, tries + 1):
        try:
            _stream(url, part, timeout)
            return
        except requests.RequestException as error:
            if not _is_transient(error):
                raise DownloadError(f"Cannot download {url}: {error}.") from error
            if attempt == tries:
                raise DownloadError(f"Cannot download {url}: {error} (tried {tries} times).") from error
            logger.info("try %d of %d for %s failed: %s", attempt, tries, url, error)
            sleep(2.0 ** (attempt - 1))


def _is_transient(error: requests.RequestException) -> bool:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    kinds = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, kinds)


def _stream(url: str, part: Path, timeout: float) -> None:
    """Adds to the part file what it lacks."""
    offset = part.stat().st_size if part.exists() else 0
    # Ranges count the bytes on the wire, so these must be those of the file.
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if offset and response.status_code == 416:
            return  # nothing lies beyond the part: it is the whole file, or wrong, which the checksum shows
        response.raise_for_status()
        if response.status_code != 206:
            offset = 0  # the server ignored the range and sends everything
        length = response.headers.get("Content-Length")
        total = offset + int(length) if length else None
        with (
            open(part, "ab" if offset else "wb") as file,
            progress_bar(desc=part.stem, initial=offset, total=total, unit="B", unit_scale=True) as bar,
        ):
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    if total is not None and part.stat().st_size < total:  # older urllib3 takes a short body for a whole one
        raise requests.ConnectionError(f"connection closed after {part.stat().st_size} of {total} bytes")
