"""The exchanges of a communicator, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tkg_incremental.communicator import LOCAL
from tkg_incremental.distributed import connect

Found = Callable[[str], dict[int, list[dict[str, Any]]]]


@pytest.mark.parametrize("variables", [{}, {"WORLD_SIZE": "1", "RANK": "0"}, {"WORLD_SIZE": "4"}])
def test_connect_without_other_processes(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert connect() is LOCAL


def test_exchanges(found: Found) -> None:
    for size, group in found("exchanges").items():
        assert [process["rank"] for process in group] == list(range(size))
        for rank, process in enumerate(group):
            assert process["size"] == size
            assert process["repr"] == f"{'Distributed' * (size > 1)}Communicator({rank} of {size})"
            assert process["broadcast"] == {"rank": 0}
            assert process["load"]["step"] == 7
            assert process["load"]["weights"].tolist() == [0.0, 1.0, 2.0]
            assert process["mean"].tolist() == [1.0, (size - 1) / 2]
            assert process["device"] == "cpu"


def test_gather_takes_any_length(found: Found) -> None:
    for size, group in found("exchanges").items():
        for process in group:
            assert len(process["gather"]) == len(process["gather nothing"]) == size
            for rank, part in enumerate(process["gather"]):
                assert torch.equal(part, torch.full((rank, 2), float(rank)))
            assert all(part.shape == (0, 2) for part in process["gather nothing"])


def test_errors_name_the_exchange(found: Found) -> None:
    first, second = found("silent")[2]
    assert first["silent"].startswith(
        "process 0 of 2: exchange of gradients failed: another process has ended or does not respond ("
    )
    assert "imed out" in first["silent"]
    assert first["first"] == "OSError: no space left"
    assert second["first"] == "FirstFailedError: the first process failed: OSError: no space left"
    for process in (first, second):  # other errors are raised as they are
        assert process["other"] == "RuntimeError: shapes do not match"
