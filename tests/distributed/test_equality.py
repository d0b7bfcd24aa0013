"""One, two and four real processes give the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

SIZES = (1, 2, 4)


Found = Callable[[str], dict[int, list[dict[str, Any]]]]


def test_ranks_and_metrics_have_the_same_bits(found: Found) -> None:
    metrics = found("metrics")
    (local,) = metrics[1]
    names = {"C@10", "A@10", "DF@10", "RRD", "MRR", "alpha"}
    assert names <= {name.rpartition(" ")[2] for name in local}
    assert len(local["DE 7 filtered"]) > 100
    for group in metrics.values():
        for process in group:
            assert process.keys() == local.keys()
            for name, value in local.items():
                assert value.numel() > 0 or " 0 deleted" in name, name
                assert torch.equal(process[name].nan_to_num(-1), value.nan_to_num(-1)), name


def test_losses_are_the_same(found: Found) -> None:
    losses = found("losses")
    (local,) = losses[1]
    differences = []
    for size in SIZES[1:]:
        for process in losses[size]:
            for case, theirs in process.items():
                ours = local[case]
                assert len(theirs["batches"]) == len(ours["batches"]) == 20
                for mine, other in zip(ours["batches"], theirs["batches"], strict=True):
                    assert mine.keys() == other.keys(), case
                    total = sum(mine.values())
                    for name, value in [*mine.items(), ("all", total)]:
                        # Relative to the sum: a divergence that is close to zero has few significant bits.
                        difference = abs(other.get(name, sum(other.values())) - value) / total
                        assert difference <= 1e-5, (size, case, name, value)
                        differences.append(difference)
                assert torch.equal(ours["generator"], theirs["generator"]), case
    assert max(differences) > 0  # sums in another order: the processes did divide the work


def test_whole_runs_are_the_same(found: Found) -> None:
    runs = found("runs")
    (local,) = runs[1]
    for size in SIZES[1:]:
        for process in runs[size]:
            for optimizer, ours in local.items():
                theirs = process[optimizer]
                for mine, other in zip(ours["history"], theirs["history"], strict=True):
                    assert other == pytest.approx(mine, rel=1e-4, abs=1e-5), (size, optimizer)
                assert theirs["alpha"] == ours["alpha"]


def test_replicas_keep_the_same_bits(found: Found) -> None:
    losses = found("losses")
    for size in SIZES[1:]:
        first, *others = losses[size]
        for case, state in first.items():
            for other in others:
                for name, table in state["weights"].items():
                    assert torch.equal(table, other[case]["weights"][name]), (size, case, name)
