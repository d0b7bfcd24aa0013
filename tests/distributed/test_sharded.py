"""Entity tables spread over processes: the same numbers as with whole tables."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from process_group import run_groups

Found = dict[int, list[dict[str, Any]]]
ENTITIES = 150


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return run_groups("sharded", tmp_path_factory.mktemp("sharded"))


def others(found: Found) -> list[tuple[int, str, dict[str, Any], dict[str, Any]]]:
    """(size of the group, case, what one process found, what one of several did)."""
    (alone,) = found[1]
    assert len(alone) == 3
    return [
        (size, case, alone[case], process[case]) for size in (2, 4) for process in found[size] for case in process
    ]


def test_rows_are_divided(found: Found) -> None:
    for size, group in found.items():
        for case in group[0]:
            rows = [process[case]["rows here"] for process in group]
            assert sum(rows) == ENTITIES
            assert max(rows) == -(-ENTITIES // size)


def test_initial_values_are_those_of_one_process(found: Found) -> None:
    for _, case, whole, sharded in others(found):
        for name, table in whole["begin"].items():
            assert torch.equal(sharded["begin"][name], table), (case, name)


def test_losses_and_weights_are_those_of_whole_tables(found: Found) -> None:
    for size, case, whole, sharded in others(found):
        for mine, theirs in zip(whole["losses"], sharded["losses"], strict=True):
            assert theirs == pytest.approx(mine, rel=1e-9), (size, case)
        for name, table in whole["marked"].items():
            assert not torch.equal(table, whole["begin"][name])
            assert torch.allclose(sharded["marked"][name], table, rtol=1e-6, atol=1e-9), (size, case, name)


def test_the_best_epoch_comes_back(found: Found) -> None:
    for size, case, _, sharded in others(found):
        for name, table in sharded["marked"].items():
            assert torch.equal(sharded["rewound"][name], table), (size, case, name)


def test_ranks_and_metrics_are_those_of_whole_tables(found: Found) -> None:
    for size, case, whole, sharded in others(found):
        assert len(whole["ranks"]["deleted"]) > 0
        for name, ranks in whole["ranks"].items():
            assert torch.equal(sharded["ranks"][name], ranks), (size, case, name)
        assert sharded["metrics"] == whole["metrics"]
        assert torch.equal(sharded["alpha"], whole["alpha"])
