"""Groups of real processes that do one task together, forked from a process that has imported everything.

Usage: ``python process_group.py TASKS OUT TASK SIZE …``, with ``TASKS`` a file whose function ``TASK`` takes a world.
What each process of each group returns is left in ``OUT/SIZE-RANK.pt``.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run_groups(task: str, folder: Path, sizes: tuple[int, ...] = (1, 2, 4)) -> dict[int, list[Any]]:
    """What the processes of each size of group return from a task, by rank."""
    import torch

    folder.mkdir(exist_ok=True)
    command = [sys.executable, __file__, str(HERE / "distributed" / "tasks.py"), str(folder), task, *map(str, sizes)]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return {size: [torch.load(folder / f"{size}-{rank}.pt") for rank in range(size)] for size in sizes}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def fork_group(work: Callable[[], None], size: int) -> list[int]:
    """Runs the work in ``size`` processes that find each other; their exit codes, negative for a signal."""
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


def main(tasks: str, folder: str, task: str, sizes: list[int]) -> int:
    import torch

    from tkg_incremental.distributed import join

    specification = importlib.util.spec_from_file_location("tasks", tasks)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for size in sizes:

        def work(size: int = size) -> None:
            world = join(timeout=30)
            torch.save(getattr(module, task)(world), Path(folder) / f"{size}-{world.rank}.pt")
            world.leave()

        if any(fork_group(work, size)):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], [int(size) for size in sys.argv[4:]]))  # type: ignore[call-arg]
