"""Communication between the processes of a run, for a run with one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class Communicator:
    """The communicator of a single process: every exchange returns its input.

    :class:`tkg_incremental.distributed.DistributedCommunicator` is the same for one of several processes.
    """

    #: Rank of this process.
    rank = 0
    #: Number of processes.
    size = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and calls the callbacks."""
        return self.rank == 0

    @contextmanager
    def first(self) -> Iterator[bool]:
        """A block that only the first process executes; the others wait, and fail if it fails.

        Yields:
            Whether this is the first process.
        """
        yield True

    def broadcast(self, value: Any) -> Any:
        """Returns the first process' value on all processes."""
        return value

    def load(self, read: Callable[[], Any], device: torch.device) -> Any:
        """Returns what ``read`` gives on the first process (tensors in plain containers), on each process' device."""
        return read()

    def mean(self, values: Tensor) -> Tensor:
        """The mean of equally shaped tensors, one per process."""
        return values

    def gather(self, values: Tensor) -> list[Tensor]:
        """The tensors ``[n, *]`` of all processes by rank; ``n`` may differ."""
        return [values]

    def average_gradients(self, tables: Sequence[Tensor], sparse: bool) -> None:
        """Averages the gradients of tables over the processes, in place.

        Args:
            tables: The tables, the same on all processes.
            sparse: Exchange touched rows only.
        """

    def device(self, name: str) -> torch.device:
        """This process' device; ``"auto"`` chooses the fastest available one."""
        if name != "auto":
            return torch.device(name)
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    @contextmanager
    def translate_errors(self, about: str) -> Iterator[None]:
        """Turns communication failures into an error that names what was exchanged.

        Args:
            about: What is exchanged.
        """
        yield

    def shutdown(self) -> None:
        """Closes the connections."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rank} of {self.size})"


#: The communicator of a run with one process.
LOCAL = Communicator()
