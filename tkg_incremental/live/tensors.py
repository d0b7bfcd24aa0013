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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.storage import checksum

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
ALIGNMENT, MAX_HEADER = 64, 1 << 24


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Writes tensors by name to a new file, flushes it to disk, and returns ``{"bytes": size, "sha256": checksum}``."""
    header: dict[str, Any] = {}
    place = 0
    for name, tensor in tensors.items():
        stop = place + tensor.nbytes
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [place, stop]}
        place = stop
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    digest = hashlib.sha256()
    with open(path, "xb") as file:
        flat = (tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() for tensor in tensors.values())
        head = memoryview(len(text).to_bytes(8, "little") + text)
        for data in (head, *(memoryview(each) for each in flat)):  # type: ignore[arg-type]
            file.write(data)
            digest.update(data)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": 8 + len(text) + place, "sha256": digest.hexdigest()}


def file_checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return checksum(file).hex()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Maps the tensors of a file. Pages are read when used; changes stay in memory. A :class:`ValueError` says that the
    header is damaged or does not fit the size of the file."""
    total = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if total < 8 or length > min(total - 8, MAX_HEADER):
            raise ValueError(f"it is truncated or damaged: its header should have {length} bytes")
        text = file.read(length)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        places = {name: _place(about, 8 + length, total) for name, about in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its header is damaged ({error!r})") from error
    mapped = np.memmap(path, np.uint8, mode="c")
    tensors = {}
    for name, (dtype, shape, start, stop) in places.items():
        data = torch.from_numpy(mapped[start:stop])
        # A file of another writer need not be aligned.
        tensors[name] = (data if start % dtype.itemsize == 0 else data.clone()).view(dtype).reshape(shape)
    return tensors


def _place(about: dict[str, Any], base: int, total: int) -> tuple[torch.dtype, list[int], int, int]:
    """Type, shape, first byte and end of a tensor, all inside the file."""
    dtype, shape, (start, stop) = DTYPES[about["dtype"]], about["shape"], about["data_offsets"]
    if not all(isinstance(number, int) and 0 <= number < 2**62 for number in (*shape, start, stop)):
        raise ValueError(f"sizes must be integers of at least 0 (got {about})")
    if stop - start != math.prod(shape) * dtype.itemsize or base + stop > total:
        raise ValueError(f"a tensor should have {math.prod(shape) * dtype.itemsize} bytes, which are not there")
    return dtype, shape, base + start, base + stop
