"""JSON lines: one object per line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tkg_incremental.datasets.lines import DataError, read_text, short
from tkg_incremental.datasets.readers.records import Records

# Half of a character: JSON can write it, and UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json_lines(path: Path) -> Records:
    """Reads one JSON object per line; keys are the names of the columns, and a missing key is an empty field."""
    objects: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(path, number, f"expected one JSON object per line ({error})") from None
        if not isinstance(found, dict):
            raise DataError(path, number, f"expected one JSON object per line (got {short(line.strip())!r})")
        for key, value in found.items():
            if isinstance(value, (list, dict)):
                raise DataError(path, number, f"expected text or a number for {key!r} (got {short(str(value))!r})")
            if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
                raise DataError(path, number, f"expected Unicode text for {key!r} (got {short(ascii(value))})")
        objects.append(found)
        lines.append(number)
    if not objects:
        raise DataError(path, None, "expected at least one line (the file is empty)")
    header = list(dict.fromkeys(key for found in objects for key in found))
    return Records(path, header, [[found.get(key) for key in header] for found in objects], lines)
