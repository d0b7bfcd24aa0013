"""Keeping the memory a process has freed, so that the next large tensor does not have to fault it in again."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Makes the allocator of the C library keep large blocks instead of returning them to the system.

    On Linux every tensor of more than a few hundred kilobytes is by default mapped afresh and unmapped when freed,
    and touching fresh pages costs ten times what filling them does. A training run makes such tensors thousands of
    times a minute. This is a setting of the whole process, so it is for programs to make, not for libraries: the
    examples and the command line call it.

    Returns:
        Whether the allocator has this setting (glibc).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
