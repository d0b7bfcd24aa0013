"""Reads and writes the safetensors format: memory-mapped, and checked against the file before any use.

The format is a little-endian length, a JSON header and the bytes of the tensors. It is written here by hand for two
reasons: the checksum is computed while the bytes are written, and a damaged header cannot ask for memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["TensorFileError", "file_checksum", "read_header", "read_tensors", "write_tensors"]

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ALIGNMENT = 64
MAX_HEADER = 1 << 24
CHUNK = 1 << 24


class TensorFileError(ValueError):
    """A tensor file is truncated or damaged."""


class Entry(NamedTuple):
    """Where a tensor is in its file."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int


def _bytes(tensor: Tensor) -> memoryview:
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())  # type: ignore[arg-type]


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Writes tensors to a file and flushes it to disk.

    Args:
        path: The file; must not exist.
        tensors: The tensors by name.

    Returns:
        ``{"bytes": size, "sha256": checksum}``.
    """
    header: dict[str, Any] = {}
    place = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    digest, size = hashlib.sha256(), 0
    with open(path, "xb") as file:
        head = memoryview(len(text).to_bytes(8, "little") + text)
        for data in (head, *map(_bytes, tensors.values())):
            for low in range(0, len(data), CHUNK):
                part = data[low : low + CHUNK]
                file.write(part)
                digest.update(part)
            size += len(data)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": size, "sha256": digest.hexdigest()}


def file_checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _digest(file)


def _digest(file: Any) -> str:  # Python 3.10
    digest = hashlib.sha256()
    while part := file.read(CHUNK):
        digest.update(part)
    return digest.hexdigest()


def read_header(path: Path) -> dict[str, Entry]:
    """The tensors of a file: types, shapes and places, all inside the file.

    Args:
        path: The file.

    Raises:
        TensorFileError: If the header is damaged or does not fit the size of the file.
    """
    total = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if total < 8 or length > min(total - 8, MAX_HEADER):
            raise TensorFileError(f"it is truncated or damaged: its header should have {length} bytes")
        try:
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            return {name: _entry(name, about, 8 + length, total) for name, about in header.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, TensorFileError):
                raise
            raise TensorFileError(f"its header is damaged ({error!r})") from error


def _entry(name: str, about: dict[str, Any], base: int, total: int) -> Entry:
    dtype, shape, (start, stop) = DTYPES[about["dtype"]], about["shape"], about["data_offsets"]
    if not all(isinstance(number, int) and 0 <= number < 2**62 for number in (*shape, start, stop)):
        raise TensorFileError(f"the sizes of '{name}' are damaged")
    if stop - start != math.prod(shape) * dtype.itemsize or base + stop > total:
        raise TensorFileError(f"'{name}' should have {math.prod(shape) * dtype.itemsize} bytes, which are not there")
    return Entry(dtype, tuple(shape), base + start)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Maps the tensors of a file. Pages are read when used; changes stay in memory.

    Args:
        path: The file.
    """
    tensors = {}
    mapped = np.memmap(path, np.uint8, mode="c") if path.stat().st_size else np.empty(0, np.uint8)
    for name, (dtype, shape, start) in read_header(path).items():
        size = math.prod(shape) * dtype.itemsize
        if size and start % dtype.itemsize == 0:
            tensors[name] = torch.from_numpy(mapped[start : start + size]).view(dtype).reshape(shape)
        else:  # of another writer, or empty
            raw = bytearray(mapped[start : start + size].tobytes())
            tensors[name] = (torch.frombuffer(raw, dtype=dtype) if size else torch.empty(0, dtype=dtype)).reshape(shape)
    return tensors
