"""Memory of this process, as the system sees it."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

MB = 2**20


def trim() -> None:
    """Returns what the allocator holds without need to the system, so that :func:`resident` counts what is used."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def resident() -> float:
    """MB in memory now."""
    return _status("VmRSS")


def reset_peak() -> None:
    """Begins a new peak. The one of ``getrusage`` is for life, and would keep what making the data took."""
    if sys.platform.startswith("linux"):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    """Most MB in memory at a time since :func:`reset_peak`."""
    return _status("VmHWM")


def _status(field: str) -> float:
    status = Path("/proc/self/status")
    if not status.exists():  # another system: bytes on macOS, and the peak is all there is
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return int(lines[field].split()[0]) / 1024
