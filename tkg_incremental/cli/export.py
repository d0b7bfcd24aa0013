"""``export``: embeddings with their names, for other programs."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.cli.arguments import Commands, add_command, add_run, one_of
from tkg_incremental.cli.errors import OK, UsageError
from tkg_incremental.cli.opened import open_model
from tkg_incremental.models import TKGModel
from tkg_incremental.storage import atomic_write

DESCRIPTION = """
Write the vectors a model has learnt, and the names of their rows:

  embeddings.safetensors or embeddings.npz   the tables
  tables.tsv      what the rows of each table stand for: entities, relations or steps
  entities.tsv    id, name, first step of every entity: row 0 of a table is id 0
  relations.tsv   id, name of every relation
  steps.tsv       id, label of every step
"""
EXAMPLES = """
tkg-incremental export runs/demo --to vectors
tkg-incremental export runs/demo --to vectors --format numpy
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "export", "write embeddings with their names", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("--to", metavar="DIR", type=Path, required=True, help="folder to write to; made if missing")
    parser.add_argument(
        "--format",
        type=one_of(["safetensors", "numpy"]),
        default="safetensors",
        metavar="KIND",
        help="safetensors or numpy (safetensors)",
    )


def run(args: argparse.Namespace) -> int:
    model, catalog = open_model(args.run_dir)
    tables = {name: table.detach().contiguous() for name, table in model.encoder.tables().items()}
    if args.format == "safetensors":
        path, content = args.to / "embeddings.safetensors", _safetensors(tables, model)
    else:
        path, content = args.to / "embeddings.npz", _numpy(tables)
    with atomic_write(path) as file:
        file.write(content)
    axes, sizes = model.encoder.axes, {name: table.shape for name, table in tables.items()}
    _write_tsv(args.to / "tables.tsv", ["table", "axis", "rows", "width"], ((n, axes[n], *sizes[n]) for n in tables))
    labels = catalog.axis.labels
    first = (labels[step] if step < len(labels) else "" for step in catalog.first_seen.tolist())
    entities = ((i, name, when) for i, (name, when) in enumerate(zip(catalog.entities, first, strict=True)))
    _write_tsv(args.to / "entities.tsv", ["id", "name", "first_step"], entities)
    _write_tsv(args.to / "relations.tsv", ["id", "name"], enumerate(catalog.relations))
    _write_tsv(args.to / "steps.tsv", ["id", "label"], enumerate(labels))
    shown = ", ".join(f"{name} {list(shape)}" for name, shape in sizes.items())
    print(f"{path}: {shown}\nNames in {args.to}: entities.tsv, relations.tsv, steps.tsv, tables.tsv")
    return OK


def _safetensors(tables: dict[str, Tensor], model: TKGModel) -> bytes:
    try:
        from safetensors.torch import save
    except ImportError:
        raise UsageError(
            "--format safetensors needs the package safetensors: pip install 'tkg-incremental[export]'; "
            "or take --format numpy"
        ) from None
    return save(tables, metadata={"model": type(model).__name__, "options": json.dumps(model.options)})


def _numpy(tables: dict[str, Tensor]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: table.to(torch.float32).numpy() for name, table in tables.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def _write_tsv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")  # quotes a name with a tab or line end in it
    writer.writerow(header)
    writer.writerows(rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())
