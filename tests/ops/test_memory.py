import sys

import pytest
import torch

from tkg_incremental.ops import memory
from tkg_incremental.ops.memory import keep_freed_memory


def test_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()


def test_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A C library without the setting, as musl, is not an error."""

    def fail(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(memory.ctypes, "CDLL", fail)
    assert not keep_freed_memory()


def test_tensors_work_afterwards() -> None:
    assert isinstance(keep_freed_memory(), bool)
    assert torch.ones(1_000_000).sum().item() == 1_000_000
