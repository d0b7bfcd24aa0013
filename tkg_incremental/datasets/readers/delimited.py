"""Tab- and comma-separated text."""

from __future__ import annotations

import csv
from pathlib import Path

from tkg_incremental.datasets.columns import is_complete, recognise
from tkg_incremental.datasets.lines import read_fields, read_text, records_of
from tkg_incremental.datasets.readers.records import Records

DELIMITERS = ("\t", ";", "|", ",")

_SNIFFED_LINES = 20


def read_delimited(path: Path, delimiter: str | None = None) -> Records:
    """Reads delimited text.

    Args:
        path: A UTF-8 text file.
        delimiter: What separates the fields; sniffed by default.
    """
    text = read_text(path)
    rows, lines = [], []
    for line, fields in read_fields(path, None, delimiter or sniff(path, text), text):
        rows.append(fields)
        lines.append(line)
    return Records(path, None, rows, lines)


def sniff(path: Path, text: str) -> str:
    """The delimiter under which the first lines look most like a table of facts.

    Best is one that makes a header with known names, then one that makes at least four columns, then the one under
    which most lines have as many columns as the first. Ties go to the usual one of the file's suffix.
    """
    lines = [line for line in text[:100_000].split("\n", _SNIFFED_LINES)[:_SNIFFED_LINES] if line.strip()]
    usual = "," if path.suffix.lower() == ".csv" else "\t"

    def fit(delimiter: str) -> tuple[bool, bool, int, int, bool]:
        try:
            records = list(records_of(lines, delimiter, strict=False))
        except csv.Error:
            return False, False, 0, 0, False
        width = len(records[0])
        alike = sum(len(record) == width for record in records)
        return is_complete(recognise(records[0])), width >= 4, alike, width, delimiter == usual

    return max(DELIMITERS, key=fit) if lines else usual
