"""Memory of this process, from the system."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

MB = 2**20


def trim() -> None:
    """Returns unused memory of the allocator to the system, so that :func:`resident` counts what is used."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def resident() -> float:
    """MB in memory now."""
    return _status("VmRSS")


def reset_peak() -> None:
    """Resets the peak. That of ``getrusage`` cannot be reset and would include the construction of the data."""
    if sys.platform.startswith("linux"):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    """Peak memory in MB since :func:`reset_peak`."""
    return _status("VmHWM")


def _status(field: str) -> float:
    status = Path("/proc/self/status")
    if not status.exists():  # macOS: in bytes, and only the peak
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return int(lines[field].split()[0]) / 1024
