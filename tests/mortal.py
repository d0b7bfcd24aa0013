"""``tkg_incremental`` with a process that is killed in the middle of a step: what ``torchrun`` starts in a test.

Usage: ``mortal.py RANK BATCH FILE ARGUMENT …``: process RANK gets SIGKILL in its BATCH-th batch after the base model,
right after it has made FILE.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tkg_incremental.cli import main
from tkg_incremental.training import objective


def die_at(batch: int, mark: Path) -> None:
    seen = 0
    forward = objective.Objective.forward

    def mortal(self: Any, rows: Any) -> Any:
        nonlocal seen
        losses = forward(self, rows)
        seen += any(type(term).__name__ == "Replay" for term in self.terms)  # the base model has none
        if seen == batch:
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return losses

    objective.Objective.forward = mortal  # type: ignore[method-assign]


if __name__ == "__main__":
    rank, batch, mark, *arguments = sys.argv[1:]
    if os.environ["RANK"] == rank:
        die_at(int(batch), Path(mark))
    sys.exit(main(arguments))
