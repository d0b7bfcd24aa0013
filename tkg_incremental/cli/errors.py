"""Exit codes, and the errors that end a command with one line instead of a traceback."""

from __future__ import annotations

import sys

OK, FAILED, BAD_USAGE, BAD_DATA = 0, 1, 2, 3
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + SIGINT, 128 + SIGPIPE, as shells report them


class UsageError(Exception):
    """The command was given in a way that cannot work."""


class BadDataError(Exception):
    """A file, a folder or a name is missing or wrong."""


# Errors of modules that commands import when they need them.
_ERRORS = {
    ("tkg_incremental.live.records", "GraphLockedError"): FAILED,
    ("tkg_incremental.live.records", "GraphFolderError"): BAD_DATA,
    ("sqlite3", "Error"): BAD_DATA,
    ("tkg_incremental.datasets.lines", "DataError"): BAD_DATA,
    ("tkg_incremental.datasets.download", "DownloadError"): BAD_DATA,
    ("tkg_incremental.storage", "CorruptFileError"): BAD_DATA,
    ("tkg_incremental.training.run_folder", "RunFolderError"): BAD_DATA,
    ("builtins", "FloatingPointError"): FAILED,  # a loss that is not finite
    ("tkg_incremental.distributed.communicator", "LostProcessError"): FAILED,
}


def exit_code(error: Exception) -> int | None:
    """The exit code of an error that needs no traceback; :obj:`None` for others."""
    if isinstance(error, UsageError):
        return BAD_USAGE
    for (module, name), code in _ERRORS.items():
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], name)):
            return code
    if is_out_of_memory(error) or isinstance(error, ImportError):  # a package of an extra
        return FAILED
    return BAD_DATA if isinstance(error, (BadDataError, OSError)) else None


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory could not be allocated; torch has no type of error for the CPU."""
    text = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "allocate memory" in text)
    )


def describe(error: Exception) -> str:
    """The error in one line."""
    if is_out_of_memory(error):
        return (
            f"not enough memory: {str(error).splitlines()[0] if str(error) else 'allocation failed'}; "
            "a smaller --batch-size, --replay-size or --hidden-channels needs less"
        )
    if type(error).__module__ == "sqlite3":
        return f"the fact store is damaged or cannot be used: {error}"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"'{error.filename}': {error.strerror}"  # without the number of the error
    return str(error)
