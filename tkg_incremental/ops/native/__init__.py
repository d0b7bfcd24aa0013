"""Kernels in C for tensors on the CPU, compiled when the package is installed.

Where there was no compiler, or a tensor is of another kind than they take, the same functions in torch do the work:
they are what the kernels are tested against. ``TKG_INCREMENTAL_NATIVE=0`` in the environment leaves the kernels out.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def _load() -> ctypes.CDLL | None:
    if os.environ.get("TKG_INCREMENTAL_NATIVE", "1") == "0":
        return None
    spec = importlib.util.find_spec(f"{__name__}._kernels")
    if spec is None or spec.origin is None:
        return None
    try:
        # After torch, so that both find one and the same OpenMP, with one pool of threads.
        kernels = ctypes.CDLL(spec.origin)
    except OSError:  # made for another machine
        return None
    if not _fits(kernels, Path(__file__).parent):
        warnings.warn(
            "the kernels in C were compiled from other sources and are not used: install the package again",
            stacklevel=2,
        )
        return None
    return kernels


def _fits(kernels: ctypes.CDLL, folder: Path) -> bool:
    """Whether kernels were compiled from the sources in a folder; always if there are none, as in an installation."""
    paths = sorted(folder.glob("*.[ch]"))
    if not paths:
        return True
    try:
        digest = kernels.sources
    except AttributeError:  # compiled before the digest was part of them
        return False
    digest.restype = ctypes.c_char_p
    return bool(digest() == hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest().encode())


_KERNELS = _load()


def is_available() -> bool:
    """Whether the kernels were compiled and are in use."""
    return _KERNELS is not None


def takes(*tensors: Tensor) -> bool:
    """Whether the kernels can work on these tensors: on the CPU, of 32-bit floats or 64-bit integers."""
    return _KERNELS is not None and all(
        tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.int64) for tensor in tensors
    )


def call(name: str, *arguments: Tensor | int | None) -> None:
    """Calls a kernel: tensors go by their address and must be contiguous, numbers as they are, :obj:`None` as no
    address; the number of threads is added."""
    assert _KERNELS is not None
    converted: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            assert argument.is_contiguous(), f"{name} takes contiguous tensors"
            converted.append(ctypes.c_void_p(argument.data_ptr()))
        else:
            converted.append(ctypes.c_void_p() if argument is None else ctypes.c_int64(argument))
    getattr(_KERNELS, name)(*converted, ctypes.c_int64(torch.get_num_threads()))
