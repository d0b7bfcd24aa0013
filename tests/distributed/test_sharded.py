"""Entity tables divided among processes give the same results as whole tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

Found = Callable[[str], dict[int, list[dict[str, Any]]]]
ENTITIES = 150
CASES = ("DE TIE 4", "DE TIE shared 1", "HyTE Supersede 1", "HyTE TIE 4")


def others(found: Found) -> list[tuple[int, str, dict[str, Any], dict[str, Any]]]:
    """(size of the group, case, result of one process, result of one of several processes)."""
    groups = found("sharded")
    (local,) = groups[1]
    assert len(local) == len(CASES) + 1
    pairs = [(size, process) for size in (2, 4) for process in groups[size]]
    return [(size, case, local[case], process[case]) for size, process in pairs for case in CASES]


def test_rows_are_divided(found: Found) -> None:
    for size, group in found("sharded").items():
        for case in CASES:
            rows = [process[case]["rows here"] for process in group]
            assert len(rows) == size
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
        for name, table in whole["saved"].items():
            assert not torch.equal(table, whole["begin"][name])
            assert torch.allclose(sharded["saved"][name], table, rtol=1e-6, atol=1e-9), (size, case, name)


def test_the_best_epoch_is_restored(found: Found) -> None:
    for size, case, _, sharded in others(found):
        for name, table in sharded["saved"].items():
            assert torch.equal(sharded["restored"][name], table), (size, case, name)


def test_ranks_and_metrics_are_those_of_whole_tables(found: Found) -> None:
    for size, case, whole, sharded in others(found):
        assert len(whole["ranks"]["deleted"]) > 0
        for name, ranks in whole["ranks"].items():
            assert torch.equal(sharded["ranks"][name], ranks), (size, case, name)
        assert sharded["metrics"] == whole["metrics"]
        assert sharded["alpha"] == whole["alpha"]


def test_a_whole_run_is_that_of_whole_tables(found: Found) -> None:
    groups = found("sharded")
    whole = groups[1][0]["run"]
    assert len(whole["steps"]) == 3
    for process in groups[2] + groups[4]:
        assert process["run"]["alpha"] == whole["alpha"]
        for mine, theirs in zip(whole["history"], process["run"]["history"], strict=True):
            assert theirs == pytest.approx(mine, rel=1e-9, abs=1e-12)


def test_lengths_of_rows_are_measured_on_a_sample(found: Found) -> None:
    groups = found("row_lengths")
    whole = groups[1][0]
    assert whole["all"][0] == whole["sample"][0] == math.inf
    for group in (groups[2], groups[4]):
        for process in group:
            assert process["all"] == pytest.approx(whole["all"])
            assert process["sample"] == pytest.approx(whole["sample"])
        sent = {name: sum(process[f"sent for {name}"] for process in group) for name in ("all", "sample")}
        assert 0 < sent["sample"] < sent["all"]


def test_saved_by_four_loaded_by_two(found: Found) -> None:
    groups = found("saved")
    for process in groups[2]:
        for name, table in groups[4][0].items():
            assert torch.equal(process[name], table), name
