"""Rows of sharded tables: owners, look-ups and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Found = Callable[[str], dict[int, list[dict[str, Any]]]]


def test_every_row_has_one_owner(found: Found) -> None:
    groups = found("look_ups")
    assert [process["range"] for process in groups[2]] == [(0, 5), (5, 10)]
    assert [process["range"] for process in groups[4]] == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert groups[4][3]["repr"] == "Shards(9–10 of 10)"
    for size in (2, 4):
        owners = torch.stack([process["own"] for process in groups[size]])
        assert (owners.sum(0) == 1).all()


def test_rows_come_from_their_owners(found: Found) -> None:
    for size in (2, 4):
        *others, last = found("look_ups")[size]
        for process in others:
            assert process["pair"].tolist() == [[[9.0, 90.0], [0.0, 0.0]], [[3.0, 30.0], [9.0, 90.0]]]
            assert process["single"].tolist() == [[[900.0], [0.0]], [[300.0], [900.0]]]
        assert last["pair"].shape == (0, 2, 2)
        assert last["single"].shape == (0, 2, 1)


def test_owners_receive_mean_gradients(found: Found) -> None:
    for size in (2, 4):
        group = found("look_ups")[size]
        times = torch.zeros(10)
        times[[0, 3, 9]] = torch.tensor([1.0, 1.0, 2.0])
        # All but the last process look up the same rows; the gradient is the mean over all processes.
        expected = (times * (size - 1) / size)[:, None] * torch.tensor([1.0, 1.0, 2.0])
        torch.testing.assert_close(torch.cat([process["received"] for process in group]), expected)


def test_each_row_is_sent_once(found: Found) -> None:
    for size in (2, 4):
        group = found("look_ups")[size]
        rows = torch.tensor([0, 3, 9])
        for rank, process in enumerate(group):
            own = int(process["own"][rows].sum())
            receivers = [other for other in range(size - 1) if other != rank]  # the last process needs no rows
            assert process["sent"] == own * len(receivers) * 3 * 4
