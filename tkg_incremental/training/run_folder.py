"""The folder of a run: who may write to it, and its checkpoints."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from tkg_incremental.storage import CorruptFileError, atomic_write, load_verified, save_verified

logger = logging.getLogger(__name__)

#: What a run leaves in its folder beside the checkpoints.
RESULTS = ("config.json", "run.json", "metrics.json", "model.pt", "changes.json", "report.html")
#: What every checkpoint has; a file without it is something else under a checkpoint's name.
PARTS = frozenset({"about", "base_is_ready", "weights", "generator", "result", "active"})


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
        self._lock = FileLock(self.path / ".lock")
        self.acquire()

    def acquire(self) -> None:
        """Takes the lock of the folder, if this process does not have it."""
        if self._lock.is_locked:
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunFolderError(
                f"another process, or another trainer of this one, is running in '{self.path}'; use another folder"
            ) from None
        except OSError as error:
            raise RunFolderError(f"cannot use '{self.path}' as the folder of a run: {error}") from error
        self._remove_halves()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints, oldest first."""
        paths = (self.path / "checkpoints").glob("*.pt")
        return sorted((path for path in paths if path.stem.isdecimal()), key=lambda path: int(path.stem))

    def clear(self) -> None:
        """Removes the checkpoints and the results of an earlier run: a model beside the metrics of another misleads."""
        damaged = (self.path / "checkpoints").glob("*.damaged")
        for path in [*self.checkpoints, *damaged, *(self / name for name in RESULTS)]:
            path.unlink(missing_ok=True)

    def begin(self, about: dict[str, Any]) -> None:
        """Says in the folder what run it is of, unless it is another's."""
        if self.checkpoints:
            raise RunFolderError(
                f"'{self.path}' holds an earlier run: resume() continues it, overwrite=True replaces it"
            )
        with self.writing("config.json"), atomic_write(self / "config.json") as file:
            file.write(json.dumps(about, indent=1, ensure_ascii=False).encode())

    def save(self, state: dict[str, Any]) -> None:
        """Adds a checkpoint, whole or not at all, and prunes the oldest."""
        saved = self.checkpoints
        number = int(saved[-1].stem) + 1 if saved else 1
        with self.writing("a checkpoint"):
            save_verified(_trimmed(state), self.path / "checkpoints" / f"{number:08d}.pt")
            for path in self.checkpoints[: -self.keep]:
                path.unlink(missing_ok=True)

    def latest(self, device: str | torch.device = "cpu") -> dict[str, Any]:
        """The newest checkpoint that is whole. Damaged ones are set aside, so that they do not count as kept.

        Args:
            device: Where to put its tensors.
        """
        found = self.checkpoints
        for path in reversed(found):
            try:
                state = load_verified(path, device)
                if not isinstance(state, dict) or not state.keys() >= PARTS:
                    raise CorruptFileError(path, "it is no checkpoint of a run")
                return state
            except CorruptFileError as error:
                logger.warning("%s; the checkpoint before is used", error)
                path.replace(path.with_suffix(".damaged"))
            except OSError as error:
                raise RunFolderError(f"cannot read the checkpoint '{path}': {error}") from error
        damaged = f": all of its {len(found)} checkpoints are damaged" if found else ""
        raise RunFolderError(f"there is no checkpoint to resume from in '{self.path}'{damaged}")

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turns what the disk refuses into an error that says what is still there.

        Args:
            what: What is being written.
        """
        if self._lock.is_locked and not Path(self._lock.lock_file).exists():
            raise RunFolderError(f"'{self.path}' was deleted while the run was writing to it")
        try:
            yield
        except OSError as error:
            saved = self.checkpoints
            kept = f"the last checkpoint, '{saved[-1]}', is untouched" if saved else "there is no earlier checkpoint"
            raise RunFolderError(f"cannot write {what} in '{self.path}': {error}; {kept}") from error

    def release(self) -> None:
        """Lets another process have the folder."""
        self._lock.release()

    def _remove_halves(self) -> None:
        """Removes unfinished files of killed processes: this process has the lock, so no other is writing them."""
        for folder, names in ((self.path / "checkpoints", ["[0-9]*.pt"]), (self.path, RESULTS[:-1])):
            for name in names:
                for path in folder.glob(f".{name}.*.tmp"):
                    path.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r}, {len(self.checkpoints)} checkpoints)"


def _trimmed(value: Any) -> Any:
    """The same without what lies beyond tensors in their storages: a view of ten rows is saved with its whole table."""
    if isinstance(value, dict):
        return {key: _trimmed(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_trimmed(part) for part in value)
    if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes() > value.nbytes:
        return value.clone()
    return value
