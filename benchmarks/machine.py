"""The machine that the benchmarks ran on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.harness import interleave
from tkg_incremental.ops import native


def product_speed() -> float:
    """GFLOP/s of one large product, the median of five."""
    query, table = torch.rand(2048, 128), torch.rand(12554, 128)
    out = torch.empty(2048, 12554)
    timing = interleave(lambda: torch.mm(query, table.t(), out=out), rounds=(5, 5))
    return 2 * 2048 * 128 * 12554 / median(timing.seconds) / 1e9


def describe(threads: int, keeps_freed_memory: bool) -> dict[str, Any]:
    """The machine, the versions, and the load."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "vector unit": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": threads,
        "seconds": "of CPU" if torch.get_num_threads() == 1 else "on the wall",
        "memory (GB)": round(int((_first("/proc/meminfo", "MemTotal") or "0").split()[0]) / 2**20, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "torch-geometric", "torch-scatter", "pykeen")},
        "kernels in C": native.is_available(),
        "freed memory kept": keeps_freed_memory,
        "torch.mm of [2048 × 128] · [128 × 12554]": f"{product_speed():.0f} GFLOP/s",
        "load before": round(os.getloadavg()[0], 2),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _first(path: str, field: str) -> str | None:
    """The first value of a field in a file of ``field : value`` lines."""
    if Path(path).exists():
        for line in Path(path).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == field:
                return value.strip()
    return None
