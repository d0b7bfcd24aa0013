"""Ranks among sharded candidates equal ranks among all candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Found = Callable[[str], dict[int, list[dict[str, Any]]]]


def test_ranks_if_a_process_has_few_candidates_or_none(found: Found) -> None:
    groups = found("counts")
    (local,) = groups[1]
    assert len(local) > 10
    for size in (2, 4):
        for process in groups[size]:
            assert process.keys() == local.keys()
            for name, ranks in local.items():
                assert torch.equal(process[name], ranks), (size, name)
