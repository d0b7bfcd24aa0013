"""Files that are either whole or not there: atomic writes, and a checksum around ``torch.save``."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch

__all__ = ["CorruptFileError", "atomic_write", "load_verified", "replace_durably", "save_verified", "sync_folder"]

# As in PNG: not ASCII, and with line ends that a copy in text mode would change.
MAGIC = b"\x89TKGI\r\n\x1a"
VERSION = 1
# magic, version, length of the payload, sha256 of the payload; the payload follows.
HEADER = struct.Struct("<8sHQ32s")
CHUNK = 1 << 20
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))


class CorruptFileError(Exception):
    """A file is missing, truncated or damaged, or was not written by this package.

    Args:
        path: The file.
        reason: What is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(path, reason)
        self.path = Path(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot load '{self.path}': {self.reason}"


def replace_durably(source: Path, target: Path) -> None:
    """Renames a finished file over another one, so that a crash leaves either the old or the new content.

    Args:
        source: The finished file, in the same folder as ``target``. All its writers have closed it.
        target: Its final name.
    """
    # The content must be on disk before the name points at it, and the name before the caller relies on it.
    with open(source, "r+b") as file:
        os.fsync(file.fileno())
    os.replace(source, target)
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Flushes the names in a folder to disk."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of ``path`` only once its block has ended well.

    On any exception, :class:`KeyboardInterrupt` included, the old file stays as it was.

    Args:
        path: The file to write. Its folder is created if missing.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own for each writer, so that two of them cannot mix. "x" gives the permissions of the
    # umask, which `tempfile` would not.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "x+b") as file:
            yield file
        replace_durably(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_verified(obj: Any, path: str | os.PathLike[str]) -> None:
    """Saves an object atomically, with a checksum that :func:`load_verified` checks.

    Args:
        obj: Tensors, numbers and strings, in any nesting of plain containers: what ``torch.load`` accepts
            with ``weights_only=True``.
        path: The file to write. Its folder is created if missing.
    """
    with atomic_write(path) as file:
        file.write(bytes(HEADER.size))
        try:
            torch.save(obj, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # torch hides what the disk said behind an error of its own
                raise error.__context__ from error
            raise
        length = file.tell() - HEADER.size
        file.seek(HEADER.size)
        digest = checksum(file)
        file.seek(0)
        file.write(HEADER.pack(MAGIC, VERSION, length, digest))


def load_verified(
    path: str | os.PathLike[str],
    map_location: str | torch.device = "cpu",
) -> Any:
    """Loads what :func:`save_verified` wrote; nothing is unpickled before the checksum is found right.

    Args:
        path: The file to read.
        map_location: The device to put the tensors on.

    Raises:
        CorruptFileError: If the file is truncated, damaged or of another kind.
        FileNotFoundError: If there is no such file.
    """
    with open(path, "rb") as file:
        _verify(file, path)
        file.seek(HEADER.size)
        # Torch before 2.6 reads no archive that begins later than its file.
        payload = io.BytesIO(file.read()) if TORCH < (2, 6) else file
        try:
            return torch.load(payload, map_location=map_location, weights_only=True)
        except pickle.UnpicklingError as error:
            # The bytes are as they were written, so it is the object that was not one of the plain kinds.
            raise CorruptFileError(path, f"it holds more than tensors and plain values ({error})") from error
        except (OSError, MemoryError):
            raise
        except Exception as error:
            # Bytes that `torch.save` did not write may raise anything.
            raise CorruptFileError(path, f"it was not written by this package ({error!r})") from error


def _verify(file: BinaryIO, path: str | os.PathLike[str]) -> None:
    header = file.read(HEADER.size)
    if header[: len(MAGIC)] != MAGIC[: len(header)]:
        raise CorruptFileError(path, "it was not written by this package, or its first bytes are damaged")
    if len(header) < HEADER.size:
        raise CorruptFileError(path, f"it is truncated: its header has {HEADER.size} bytes (got {len(header)})")
    _, version, expected_length, expected_digest = HEADER.unpack(header)
    if version != VERSION:
        raise CorruptFileError(path, f"format version {VERSION} is expected (got {version})")
    length = os.fstat(file.fileno()).st_size - HEADER.size
    if length != expected_length:
        raise CorruptFileError(path, f"its payload should have {expected_length} bytes (got {length})")
    if checksum(file) != expected_digest:
        raise CorruptFileError(path, "its checksum is wrong: the content was damaged after it was written")


def checksum(file: BinaryIO) -> bytes:
    """SHA-256 of the rest of a file, of which a part at a time is held in memory."""
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest.digest()
