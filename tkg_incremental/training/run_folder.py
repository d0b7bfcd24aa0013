"""The folder of a run: who may write to it, and its checkpoints."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tkg_incremental.storage import CorruptFileError, load_verified, save_verified

logger = logging.getLogger(__name__)

#: What a run leaves in its folder beside the checkpoints.
RESULTS = ("config.json", "run.json", "metrics.json", "model.pt", "changes.json", "report.html")


class RunFolderError(RuntimeError):
    """A run folder cannot be used as asked."""


class RunFolder:
    """Keeps the checkpoints of one run. One process at a time may hold it.

    Args:
        path: The folder; made if missing.
        keep: How many checkpoints to keep.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1 (got {keep})")
        self.path, self.keep = Path(path), keep
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.path / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunFolderError(f"another process is running in '{self.path}'; use another folder") from None

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return sorted((self.path / "checkpoints").glob("[0-9]*.pt"))

    def clear(self) -> None:
        """Removes the checkpoints and the results of an earlier run: a model beside the metrics of another misleads."""
        for path in [*self.checkpoints, *(self / name for name in RESULTS)]:
            path.unlink(missing_ok=True)

    def save(self, state: dict[str, Any]) -> None:
        """Adds a checkpoint, whole or not at all, and prunes the oldest."""
        saved = self.checkpoints
        number = int(saved[-1].stem) + 1 if saved else 1
        try:
            save_verified(state, self.path / "checkpoints" / f"{number:08d}.pt")
        except OSError as error:
            kept = f"the last checkpoint, '{saved[-1]}', is untouched" if saved else "there is no earlier checkpoint"
            raise RunFolderError(f"cannot save a checkpoint in '{self.path}': {error}; {kept}") from error
        for path in self.checkpoints[: -self.keep]:
            path.unlink()

    def latest(self) -> dict[str, Any]:
        """The newest checkpoint that is whole."""
        for path in reversed(self.checkpoints):
            try:
                return load_verified(path)
            except CorruptFileError as error:
                logger.warning("%s; the one before is used", error)
        raise RunFolderError(f"there is no checkpoint to resume from in '{self.path}'")

    def release(self) -> None:
        """Lets another process have the folder."""
        self._lock.release()

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r}, {len(self.checkpoints)} checkpoints)"
