"""What a script can rely on: an exit code for each kind of failure."""

from __future__ import annotations

from tkg_incremental.datasets import DataError, DownloadError
from tkg_incremental.storage import CorruptFileError
from tkg_incremental.training import RunFolderError

OK, FAILED, BAD_USAGE, BAD_DATA = 0, 1, 2, 3
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + SIGINT, 128 + SIGPIPE, as shells report them


class UsageError(Exception):
    """The command was given in a way that cannot work."""


class BadDataError(Exception):
    """A file or folder, or a name asked for, is not there or not as it should be."""


#: Everything that ends a command with :data:`BAD_DATA` and one line instead of a traceback.
BAD_DATA_ERRORS = (BadDataError, DataError, DownloadError, CorruptFileError, RunFolderError, OSError)
