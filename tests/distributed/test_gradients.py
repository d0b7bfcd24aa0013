"""Averages of gradients over processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

Found = Callable[[str], dict[int, list[dict[str, Any]]]]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_averages(found: Found, kind: str) -> None:
    for size, group in found("gradients").items():
        for table, shape in enumerate([(9, 3), (9, 2), (9, 4)]):
            own = [process[kind]["own"][table] for process in group]
            expected = sum(torch.zeros(shape) if part is None else part for part in own) / size
            for process in group:
                averaged = process[kind]["averaged"][table]
                if averaged is None:
                    assert all(part is None for part in own)
                else:
                    torch.testing.assert_close(averaged, expected, check_dtype=False)
                    assert torch.equal(averaged, group[0][kind]["averaged"][table])  # the same bits on all processes


def test_untouched_tables_are_not_exchanged(found: Found) -> None:
    for size in (2, 4):
        for process in found("gradients")[size]:
            assert process["sparse"]["averaged"][2] is None
            assert process["sparse"]["is sparse"] == [True, True, None]


def test_bytes_are_counted(found: Found) -> None:
    groups = found("gradients")
    assert groups[1][0]["sent"] == 0
    dense = 9 * (3 + 2 + 4) * 8
    for size in (2, 4):
        for rank, process in enumerate(groups[size]):
            rows = int(process["sparse"]["own"][0].any(1).sum())
            more = 9 * (8 + 2 * 8) if rank == size - 1 else 0
            assert process["sent"] == dense + rows * (8 + 3 * 8) + more
