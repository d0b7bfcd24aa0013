"""Groups of real processes that run tasks together, forked from a process that has imported everything.

Usage: ``python process_group.py TASKS OUT SIZES TASK,TASK… …``, with ``TASKS`` a file whose functions ``TASK`` take a
communicator. The tasks of one argument run in the same processes, one after the other. The return value of each process
of each group is saved as ``OUT/TASK-SIZE-RANK.pt``.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run_groups(folder: Path, sizes: Sequence[int], tasks: Sequence[str]) -> None:
    """Runs each list of tasks, separated by commas, in groups of several sizes, one after the other."""
    folder.mkdir()
    command = [sys.executable, __file__, str(HERE / "distributed" / "tasks.py"), str(folder)]
    done = subprocess.run(
        [*command, ",".join(map(str, sizes)), *tasks],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TASK_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]


def read_groups(folder: Path, sizes: Sequence[int], task: str) -> dict[int, list[Any]]:
    """The return values of a task by size of the group and by rank, without those of killed processes."""
    import torch

    files = {size: [folder / f"{task}-{size}-{rank}.pt" for rank in range(size)] for size in sizes}
    return {size: [torch.load(file) for file in each if file.exists()] for size, each in files.items()}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def fork_group(work: Callable[[], None], size: int) -> list[int]:
    """Runs a function in ``size`` connected processes and returns their exit codes, negative for a signal."""
    variables = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            try:
                os.environ.update(variables, RANK=str(rank), LOCAL_RANK=str(rank))
                work()
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def main(file: str, folder: str, sizes: list[int], tasks: list[str]) -> int:
    import torch

    from tkg_incremental.distributed import connect

    specification = importlib.util.spec_from_file_location("tasks", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)

    for task in tasks:
        for size in sizes:

            def work(task: str = task, size: int = size) -> None:
                communicator = connect(timeout=30)
                for name in task.split(","):
                    file = Path(folder) / f"{name}-{size}-{communicator.rank}.pt"
                    torch.save(getattr(module, name)(communicator), file)
                communicator.shutdown()

            if not {0, -signal.SIGKILL} >= set(fork_group(work, size)):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], [int(size) for size in sys.argv[3].split(",")], sys.argv[4:]))
