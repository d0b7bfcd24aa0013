"""The processes of a run: one that is alone, or several that talk to each other."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

# How the libraries below speak when they cannot reach somebody; gloo has no type of error for it.
_FROM_AFAR = re.compile(r"gloo|nccl|c10d|connection|socket|broken pipe|timed? ?out|ProcessGroup", re.IGNORECASE)


class LostProcessError(RuntimeError):
    """Another process of the run has ended, failed or fallen silent."""


class FirstFailedError(LostProcessError):
    """The first process, which does some things for all, could not do one of them; it says why itself."""


class World:
    """A process that is alone. Everything there is to say between processes comes to nothing.

    :class:`Processes` is the same for one of several.
    """

    #: Number of this process.
    rank = 0
    #: How many processes there are.
    size = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and tells the user."""
        return self.rank == 0

    @contextmanager
    def first(self) -> Iterator[bool]:
        """A block for the first process alone, for as long as it takes; the others wait, and fail if it fails.

        Yields:
            Whether this is the first process.
        """
        yield True

    def tell(self, value: Any) -> Any:
        """The first process' value, for all."""
        return value

    def load(self, read: Callable[[], Any], device: torch.device) -> Any:
        """What the first process reads, tensors in plain containers, for all and each on its own device."""
        return read()

    def mean(self, values: Tensor) -> Tensor:
        """The mean of equally shaped tensors, one of each process."""
        return values

    def gather(self, values: Tensor) -> list[Tensor]:
        """The tensors ``[n, *]`` of all processes by rank; their ``n`` may differ."""
        return [values]

    def place(self, device: str) -> torch.device:
        """This process' device; ``"auto"`` is the best there is."""
        if device != "auto":
            return torch.device(device)
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    @contextmanager
    def talking(self, about: str) -> Iterator[None]:
        """Turns what goes wrong between processes into an error that says so.

        Args:
            about: What is exchanged.
        """
        yield

    def leave(self) -> None:
        """Ends the conversation."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rank} of {self.size})"


#: The world of a process that is alone.
ALONE = World()


class Processes(World):
    """One of several processes, as ``torchrun`` starts them: it reads their addresses from the environment.

    A process that dies is noticed at once, because its connections close. One that falls silent, because its machine
    or the network is gone, is noticed when it is waited for: after ``timeout`` seconds while gradients are exchanged,
    where nobody has a reason to be late, and after ``patience`` seconds elsewhere.

    Args:
        timeout: Seconds to wait for another process' gradients.
        patience: Seconds to wait for the others to start, to evaluate, or to write a checkpoint.
    """

    def __init__(self, timeout: float = 45.0, patience: float = 1800.0) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self._local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        #: Bytes of rows and gradients that this process has handed over for others, to be read by whoever measures.
        self.sent = 0
        backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(self._local_rank)
            backend = "cpu:gloo,cuda:nccl"
        with self.talking("where everybody is"):
            dist.init_process_group(backend, timeout=timedelta(seconds=patience))
            #: For what happens at every update.
            self.group = dist.new_group(timeout=timedelta(seconds=timeout))

    @contextmanager
    def first(self) -> Iterator[bool]:
        try:
            yield self.is_first
        except BaseException as error:
            if self.is_first:
                with suppress(LostProcessError):  # those who wait learn of the failure by its name, if they are there
                    self.tell(f"{type(error).__name__}: {error}")
            raise
        told = self.tell(None)
        if told is not None:
            raise FirstFailedError(f"the first process failed: {told}")

    def tell(self, value: Any) -> Any:
        parcel = [value]
        with self.talking("what the first process says"):
            dist.broadcast_object_list(parcel, src=0)
        return parcel[0]

    def load(self, read: Callable[[], Any], device: torch.device) -> Any:
        buffer, state = io.BytesIO(), None
        with self.first() as is_first:
            if is_first:
                state = read()
                torch.save(state, buffer)
        data = self.tell(buffer.getvalue())
        return state if self.is_first else torch.load(io.BytesIO(data), device, weights_only=True)

    def mean(self, values: Tensor) -> Tensor:
        values = values.clone()
        with self.talking("a mean"):
            dist.all_reduce(values, group=self.group)
        return values / self.size

    def gather(self, values: Tensor) -> list[Tensor]:
        with self.talking("results"):
            counts = values.new_zeros(self.size, dtype=torch.long)
            counts[self.rank] = len(values)
            dist.all_reduce(counts)
            lengths = counts.tolist()
            return gather_padded(values, lengths)

    def place(self, device: str) -> torch.device:
        found = super().place(device)
        if found.type == "mps" and device == "auto":
            found = torch.device("cpu")
        if found.type not in ("cpu", "cuda"):
            raise ValueError(f"device must be cpu or cuda where several processes train (got {device})")
        return torch.device("cuda", self._local_rank) if found == torch.device("cuda") else found

    @contextmanager
    def talking(self, about: str) -> Iterator[None]:
        try:
            yield
        except LostProcessError:
            raise
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and not _FROM_AFAR.search(str(error)):
                raise
            # Of gloo's message, what lies between the line of its source and its advice.
            reason = re.sub(r"^\[\S*\]\s*", "", str(error).strip()).partition(". ")[0].partition("\n")[0]
            raise LostProcessError(
                f"process {self.rank} of {self.size} lost touch with the others over {about}: one of them has ended or "
                f"does not answer ({reason})"
            ) from error

    def leave(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def gather_padded(values: Tensor, lengths: list[int], group: dist.ProcessGroup | None = None) -> list[Tensor]:
    """Tensors ``[n, *]`` of all processes, whose lengths are known; collectives want them equally long."""
    longest = max(lengths)
    padded = F.pad(values, [0, 0] * (values.dim() - 1) + [0, longest - len(values)])
    everybodys = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(everybodys, padded.contiguous(), group=group)
    return [theirs[:length] for theirs, length in zip(everybodys, lengths, strict=True)]


def join(timeout: float = 45.0, patience: float = 1800.0) -> World:
    """The processes this one was started with, by ``torchrun`` or anything that sets the same variables; or none.

    Args:
        timeout: Seconds to wait for another process' gradients.
        patience: Seconds to wait for others to start, to evaluate, or to write a checkpoint.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return ALONE
    return Processes(timeout, patience)
