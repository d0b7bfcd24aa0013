"""Communication between several processes of a run, by ``torch.distributed``."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tkg_incremental.communicator import LOCAL, Communicator
from tkg_incremental.distributed.gradients import average_rows, average_tables, gather_padded

# Messages of the communication libraries when a peer cannot be reached; gloo has no type of error for it.
_FAILURE = re.compile(r"gloo|nccl|c10d|connection|socket|broken pipe|timed? ?out|ProcessGroup", re.IGNORECASE)


class LostProcessError(RuntimeError):
    """Another process of the run has ended, failed or does not respond."""


class FirstFailedError(LostProcessError):
    """The first process failed in a block that it executes for all; it reports the reason itself."""


class DistributedCommunicator(Communicator):
    """The communicator of one of several processes, as ``torchrun`` starts them: it reads their addresses from the
    environment.

    A process that dies is detected at once, because its connections close. One that does not respond, because its
    machine or the network is down, is detected after ``timeout`` seconds while gradients are exchanged, and after
    ``patience`` seconds elsewhere.

    Args:
        timeout: Seconds to wait for another process' gradients.
        patience: Seconds to wait for others to start, to evaluate, or to write a checkpoint.
    """

    def __init__(self, timeout: float = 45.0, patience: float = 1800.0) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self._local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        #: Bytes of rows and gradients sent by this process, for benchmarks.
        self.sent = 0
        backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(self._local_rank)
            backend = "cpu:gloo,cuda:nccl"
        with self.translate_errors("the rendezvous"):
            dist.init_process_group(backend, timeout=timedelta(seconds=patience))
            #: The group for exchanges at every update.
            self.group = dist.new_group(timeout=timedelta(seconds=timeout))

    @contextmanager
    def first(self) -> Iterator[bool]:
        try:
            yield self.is_first
        except BaseException as error:
            if self.is_first:
                with suppress(LostProcessError):  # the waiting processes report the failure by its name
                    self.broadcast(f"{type(error).__name__}: {error}")
            raise
        failure = self.broadcast(None)
        if failure is not None:
            raise FirstFailedError(f"the first process failed: {failure}")

    def broadcast(self, value: Any) -> Any:
        values_ = [value]
        with self.translate_errors("a broadcast"):
            dist.broadcast_object_list(values_, src=0)
        return values_[0]

    def load(self, read: Callable[[], Any], device: torch.device) -> Any:
        buffer, state = io.BytesIO(), None
        with self.first() as is_first:
            if is_first:
                state = read()
                torch.save(state, buffer)
        data = self.broadcast(buffer.getvalue())
        return state if self.is_first else torch.load(io.BytesIO(data), device, weights_only=True)

    def mean(self, values: Tensor) -> Tensor:
        values = values.clone()
        with self.translate_errors("a mean"):
            dist.all_reduce(values, group=self.group)
        return values / self.size

    def gather(self, values: Tensor) -> list[Tensor]:
        with self.translate_errors("results"):
            counts = values.new_zeros(self.size, dtype=torch.long)
            counts[self.rank] = len(values)
            dist.all_reduce(counts)
            lengths = counts.tolist()
            return gather_padded(values, lengths)

    def average_gradients(self, tables: Sequence[Tensor], sparse: bool) -> None:
        with self.translate_errors("gradients"):
            (average_rows if sparse else average_tables)(tables, self)

    def device(self, name: str) -> torch.device:
        found = super().device(name)
        if found.type == "mps" and name == "auto":
            found = torch.device("cpu")
        if found.type not in ("cpu", "cuda"):
            raise ValueError(f"device must be cpu or cuda if several processes train (got {name})")
        return torch.device("cuda", self._local_rank) if found == torch.device("cuda") else found

    @contextmanager
    def translate_errors(self, about: str) -> Iterator[None]:
        try:
            yield
        except LostProcessError:
            raise
        except RuntimeError as error:
            if not isinstance(error, dist.DistError) and not _FAILURE.search(str(error)):
                raise
            # The part of gloo's message between its source line and its advice.
            reason = re.sub(r"^\[\S*\]\s*", "", str(error).strip()).partition(". ")[0].partition("\n")[0]
            raise LostProcessError(
                f"process {self.rank} of {self.size}: exchange of {about} failed: another process has ended or does "
                f"not respond ({reason})"
            ) from error

    def shutdown(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def connect(timeout: float = 45.0, patience: float = 1800.0) -> Communicator:
    """The communicator of this process: with those started by ``torchrun`` or anything that sets the same variables,
    or :data:`~tkg_incremental.communicator.LOCAL`.

    Args:
        timeout: Seconds to wait for another process' gradients.
        patience: Seconds to wait for others to start, to evaluate, or to write a checkpoint.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return LOCAL
    return DistributedCommunicator(timeout, patience)
