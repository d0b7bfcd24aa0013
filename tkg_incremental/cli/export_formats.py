"""Files of vectors: safetensors, NumPy, CSV and Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.cli.errors import UsageError
from tkg_incremental.storage import atomic_write


def write_tables(
    folder: Path,
    kind: str,
    tables: Mapping[str, Tensor],
    axes: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
    about: Mapping[str, Any],
) -> dict[Path, list[str]]:
    """Writes tables of vectors and returns the tables in each file.

    Args:
        folder: Where to write.
        kind: ``"safetensors"``, ``"numpy"``, ``"csv"`` or ``"parquet"``.
        tables: The vectors, each ``[rows, width]``.
        axes: What the rows of each table stand for.
        names: Names of the rows of each axis.
        about: The model, for formats with room for it.
    """
    if kind in ("safetensors", "numpy"):
        path = folder / ("embeddings.safetensors" if kind == "safetensors" else "embeddings.npz")
        content = _safetensors(tables, about) if kind == "safetensors" else _numpy(tables)
        with atomic_write(path) as file:
            file.write(content)
        return {path: list(tables)}
    written = {}
    for name, table in tables.items():
        path = folder / f"{name}.{kind}"
        columns = ["id", "name", *(f"v{i}" for i in range(table.size(1)))]
        labels = _row_names(names[axes[name]], len(table))
        if kind == "csv":
            rows = ([i, label, *row] for i, (label, row) in enumerate(zip(labels, table.tolist(), strict=True)))
            write_text(path, columns, rows, ",")
        else:
            _write_parquet(path, columns, labels, table)
        written[path] = [name]
    return written


def _row_names(names: Sequence[str], rows: int) -> list[str]:
    """With reciprocal relations a table has two rows per name, the second for the inverse relation."""
    if len(names) == rows:
        return list(names)
    return [f"{name}{suffix}" for name in names for suffix in ("", " (inverse)")]


def write_text(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str) -> None:
    """Delimited text with a header."""
    lines = [delimiter.join(quoted(cell, delimiter) for cell in row) for row in [header, *rows]]
    with atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))


def quoted(cell: object, delimiter: str) -> str:
    r"""A cell, in quotes if it would end a field or a line. Python's ``csv`` leaves a carriage return unquoted.

    >>> quoted("a,b", ","), quoted("a\rb", ","), quoted(7, ",")
    ('"a,b"', '"a\rb"', '7')
    """
    text = str(cell)
    if any(sign in text for sign in (delimiter, '"', "\n", "\r")):
        return '"' + text.replace('"', '""') + '"'
    return text


def guard(name: str) -> str:
    """A name that no spreadsheet reads as a formula.

    >>> guard("=1+1"), guard("Berlin")
    ("'=1+1", 'Berlin')
    """
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _safetensors(tables: Mapping[str, Tensor], about: Mapping[str, Any]) -> bytes:
    try:
        from safetensors.torch import save
    except ImportError:
        raise UsageError(
            "--format safetensors needs the package safetensors: pip install 'tkg-incremental[export]'; "
            "or take --format numpy"
        ) from None
    metadata = {key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()}
    return save(dict(tables), metadata=metadata)


def _numpy(tables: Mapping[str, Tensor]) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: table.to(torch.float32).numpy() for name, table in tables.items()}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _write_parquet(path: Path, columns: list[str], labels: list[str], table: Tensor) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError(
            "--format parquet needs pyarrow: pip install 'tkg-incremental[parquet]'; or take --format csv"
        ) from None
    data = [list(range(len(table))), labels, *table.to(torch.float32).numpy().T]
    buffer = io.BytesIO()
    parquet.write_table(pa.table(dict(zip(columns, data, strict=True))), buffer)
    with atomic_write(path) as file:
        file.write(buffer.getvalue())
