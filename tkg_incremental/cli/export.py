"""``export``: vectors with their names, for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.cli.arguments import Commands, add_command, add_run, one_of
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.evaluate import step_of
from tkg_incremental.cli.run_io import open_model

if TYPE_CHECKING:
    from torch import Tensor

    from tkg_incremental.models import TKGModel

DESCRIPTION = """
Write the vectors of a model, and the names of their rows:

  embeddings.safetensors or embeddings.npz   the tables; csv, parquet: a file per table, with names
  tables.tsv      what the rows of each table stand for: entities, relations or steps
  entities.tsv    id, name, first step of every entity: row 0 of a table is id 0
  relations.tsv   id, name of every relation
  steps.tsv       id, label of every step

Without --at these are the learnt tables, from which a model computes its vectors at a time. With
--at DATE they are the vectors of entities and relations at that time, as the model compares them.

Names that begin with = + - or @ are formulas to a spreadsheet: --guard-formulas puts ' before them.
"""
EXAMPLES = """
tkg-incremental export runs/demo --to vectors
tkg-incremental export runs/demo --to vectors --at 2021 --format csv
"""


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "export", "write vectors with their names", DESCRIPTION, EXAMPLES, run)
    add_run(parser)
    parser.add_argument("--to", metavar="DIR", type=Path, required=True, help="folder to write to; made if missing")
    parser.add_argument("--at", metavar="DATE", help="vectors at this time, instead of the learnt tables")
    parser.add_argument(
        "--format",
        type=one_of(["safetensors", "numpy", "csv", "parquet"]),
        default="safetensors",
        metavar="KIND",
        help="safetensors, numpy, csv or parquet (safetensors)",
    )
    parser.add_argument("--guard-formulas", action="store_true", help="put ' before names that begin a formula")


def run(args: argparse.Namespace) -> int:
    model, catalog = open_model(args.run_dir)
    from tkg_incremental.cli import export_formats as formats

    step = None if args.at is None else step_of(catalog, args.at)
    tables, axes = _learnt(model) if step is None else _at_step(model, step)
    labels = catalog.axis.labels
    names = {"entity": list(catalog.entities), "relation": list(catalog.relations), "time": labels}
    if args.guard_formulas:
        names = {axis: [formats.guard(name) for name in each] for axis, each in names.items()}
    about: dict[str, Any] = {"model": type(model).__name__, "options": model.options}
    if step is not None:
        about["at"] = labels[step]
    written = formats.write_tables(args.to, args.format, tables, axes, names, about)
    rows = [(name, axes[name], *table.shape) for name, table in tables.items()]
    formats.write_text(args.to / "tables.tsv", ["table", "axis", "rows", "width"], rows, "\t")
    first = (labels[step] if step < len(labels) else "" for step in catalog.first_seen.tolist())
    entities = ((i, name, when) for i, (name, when) in enumerate(zip(names["entity"], first, strict=True)))
    formats.write_text(args.to / "entities.tsv", ["id", "name", "first_step"], entities, "\t")
    formats.write_text(args.to / "relations.tsv", ["id", "name"], enumerate(names["relation"]), "\t")
    formats.write_text(args.to / "steps.tsv", ["id", "label"], enumerate(labels), "\t")
    for path, which in written.items():
        print(f"{path}: {', '.join(f'{name} {list(tables[name].shape)}' for name in which)}")
    print(f"Names in {args.to}: entities.tsv, relations.tsv, steps.tsv, tables.tsv")
    return OK


def _learnt(model: TKGModel) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tables of the model and what their rows stand for."""
    tables = {name: table.detach().contiguous() for name, table in model.tables().items()}
    return tables, dict(model.axes)


def _at_step(model: TKGModel, step: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The vectors of all entities and relations at a step."""
    import torch

    assert model.catalog is not None
    entities, relations = (torch.arange(len(names)) for names in (model.catalog.entities, model.catalog.relations))
    time = torch.full_like(relations, step)
    with torch.no_grad():
        tables = {
            "entity_vectors": model.candidate_vectors(entities, step),
            "relation_vectors": model.encode_relation(relations, time, "tail"),
        }
        if model.reciprocal:
            tables["inverse_relation_vectors"] = model.encode_relation(relations, time, "head")
    tables = {name: table.contiguous() for name, table in tables.items()}
    return tables, {name: "entity" if name == "entity_vectors" else "relation" for name in tables}
