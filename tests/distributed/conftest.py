"""Return values of the tasks in groups of one, two and four processes, computed once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from filelock import FileLock
from process_group import read_groups, run_groups

#: Two after four: the group of two continues what the group of four has left.
SIZES = (1, 4, 2)
#: What runs in one group; the last ones end processes.
TASKS = (
    "metrics,losses,runs,gradients,exchanges,look_ups,sharded,row_lengths,counts,saved",
    "refused",
    "silent",
    "interrupted",
)

Found = dict[int, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Found]:
    """The return values of a task by size of the group and rank. All workers of pytest share them."""
    root = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        root = root.parent
    with FileLock(root / "groups.lock"):
        if not (root / "groups").exists():
            run_groups(root / "groups", SIZES, TASKS)
    return lambda task: read_groups(root / "groups", SIZES, task)
