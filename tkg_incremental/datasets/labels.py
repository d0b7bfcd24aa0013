"""English labels of entities that the raw files know by ids."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from tkg_incremental.datasets.lines import DataError, short

# A dash or apostrophe of three bytes, e2 80 9x, whose last byte and the character after it became a question mark.
_DAMAGE = b"\xe2\x80?"
_MARK = "\ufffd"

# The text around the damage shows what was lost.
_REPAIRS = [
    (re.compile(rf"(?<=\S ){_MARK}(?=\w)"), "– "),  # "Best Actor ?Drama": a dash between spaces
    (re.compile(rf"(?<=\b1939){_MARK}(?=945\b)"), "–1"),  # the second world war
    (re.compile(rf"(?<=\bGuns N){_MARK}(?=Roses\b)"), "’ "),
]


def read_labels(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads ``id,label`` lines, as in a CSV file: ids as in ``entity2id.txt``, labels in English.

    Some labels have a damaged dash or apostrophe. It is repaired where the text around it leaves no doubt; other
    damaged labels are left out, and so are blank ones.

    Args:
        path: The file.

    Returns:
        The label of each id that has one.
    """
    labels: dict[str, str] = {}
    seen = set()
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.replace(_DAMAGE, _MARK.encode()).decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(path, number, f"expected UTF-8 text ({error.reason} at byte {error.start})") from None
            if not line.strip():
                continue
            fields = next(csv.reader([line]))
            if len(fields) != 2 or not fields[0].isdigit():
                raise DataError(path, number, f"expected an id and a label (got {short(line)!r})")
            index, label = fields[0], repair(fields[1]).strip()
            if index in seen:
                raise DataError(path, number, f"expected every id once (got {index} again)")
            seen.add(index)
            if label and _MARK not in label:
                labels[index] = label
    return labels


def repair(label: str) -> str:
    """A label with what can be repaired of damaged characters, ``"\\ufffd"``; the others stay.

    >>> repair("Golden Globe Award for Best Actor \\ufffdMotion Picture Drama")
    'Golden Globe Award for Best Actor – Motion Picture Drama'
    """
    for pattern, lost in _REPAIRS:
        label = pattern.sub(lost, label)
    return label


def label_entities(names: Sequence[str], labels: Mapping[str, str]) -> list[str]:
    """Names to show: the label of each entity, followed by its name where several have the same label.

    Args:
        names: Names of the raw files by id, such as ``"Q42"``.
        labels: Labels by id, from :func:`read_labels`. An entity without one keeps its name.

    >>> label_entities(["Q1", "Q2", "Q3", "Q4"], {"0": "Springfield", "1": "Springfield", "2": "Oslo"})
    ['Springfield (Q1)', 'Springfield (Q2)', 'Oslo', 'Q4']
    """
    shown = [labels.get(str(index), name) for index, name in enumerate(names)]
    count = Counter(shown)
    return [text if count[text] == 1 else f"{text} ({name})" for text, name in zip(shown, names, strict=True)]
