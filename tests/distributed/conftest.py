"""What groups of one, two and four processes found, once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from filelock import FileLock
from process_group import read_groups, run_groups

#: Two after four: they take up what those leave.
SIZES = (1, 4, 2)
TASKS = ("metrics", "losses", "runs", "sharded", "saved", "refused", "silent", "interrupted")

Found = dict[int, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Found]:
    """What was found in a task, by size of the group and rank. Workers of pytest share it, so that it is done once."""
    root = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        root = root.parent
    with FileLock(root / "groups.lock"):
        if not (root / "groups").exists():
            run_groups(root / "groups", SIZES, TASKS)
    return lambda task: read_groups(root / "groups", SIZES, task)
