"""``run.json``: the version, the date, the command and the options of a run of the command line."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from tkg_incremental import __version__

RUN_FILE = "run.json"


def read_run_file(folder: Path) -> dict[str, Any]:
    """The contents; empty if there is no file, as in runs that were not begun on the command line."""
    path = folder / RUN_FILE
    try:
        state = dict(json.loads(path.read_bytes().decode("utf-8", "surrogateescape")))
        return state | {"options": dict(state["options"])} if "options" in state else state
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"'{path}' is damaged or of another version: {error}") from None


def write_run_file(folder: Path, options: dict[str, Any], command: str) -> None:
    """Writes the options. The version, the date and the command are those with which the run began.

    Args:
        folder: Folder of the run.
        options: The options, as JSON can hold them.
        command: The command.
    """
    from tkg_incremental.storage import atomic_write

    begun = datetime.datetime.now(datetime.timezone.utc).isoformat(" ", "seconds")
    state = {"version": __version__, "begun": begun, "command": command}
    state |= {key: value for key, value in read_run_file(folder).items() if key in state}  # of a resumed run
    text = json.dumps({**state, "options": options}, indent=1, ensure_ascii=False)
    with atomic_write(folder / RUN_FILE) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
