"""``tkg_incremental`` with one process that is killed in the middle of a step, as ``torchrun`` starts it in a test.

Usage: ``killed_process.py RANK BATCH FILE ARGUMENT …``: process RANK gets SIGKILL in its BATCH-th batch after the base
model, directly after it has created FILE.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tkg_incremental.strategies import Replay
from tkg_incremental.training import StepLearner


def kill_at(batch: int, mark: Path) -> None:
    """Kills this process in a batch of a step, after its losses were computed."""
    seen = 0
    losses = StepLearner.losses

    def counted(self: StepLearner, drawn: Any) -> Any:
        nonlocal seen
        found = losses(self, drawn)
        seen += any(isinstance(term, Replay) for term in self.terms)  # the base model has none
        if seen == batch:
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    StepLearner.losses = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    from tkg_incremental.cli import main

    rank, batch, mark, *arguments = sys.argv[1:]
    if os.environ["RANK"] == rank:
        kill_at(int(batch), Path(mark))
    sys.exit(main(arguments))
