"""From the names in files to ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tkg_incremental.data import Vocabulary
from tkg_incremental.datasets.lines import DataError, parse_id

if TYPE_CHECKING:
    from tkg_incremental.datasets.table import Table

# Every id up to the largest gets a name: a stray large one must not fill the memory.
_MAX_ID = 10**8

#: Columns of a table, with ``F`` names each.
Columns = Sequence[Sequence[str]]


def number_names(
    kind: str, tables: Sequence[tuple[Table, Columns]], known: Sequence[str] | None = None, ids: bool = False
) -> tuple[list[str], list[list[Tensor]]]:
    """Gives the entities or relations of tables their ids, row by row.

    Args:
        kind: What is numbered; used in error messages.
        tables: Tables, and their columns with such names.
        known: All names by id; others are errors then. By default names are numbered as they occur.
        ids: Whether the tables have ids already. Without ``known`` the names are the ids.

    Returns:
        The name of every id, and for each table the ids ``[F]`` of each column.
    """
    if known is None and not ids:
        rows = chain.from_iterable(zip(*columns, strict=True) for _, columns in tables)
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        index = {name: number for number, name in enumerate(names)}
    else:
        index, vocabulary = dict[str, int](), None if ids else Vocabulary(known or [], kind)
        limit = _MAX_ID if known is None else len(known)
        for table, columns in tables:
            for name in dict.fromkeys(chain.from_iterable(zip(*columns, strict=True))):
                if name not in index:
                    index[name] = _id_of(name, kind, table, columns, vocabulary, limit)
        names = [str(number) for number in range(max(index.values()) + 1)] if known is None else list(known)
    return names, [
        [torch.tensor([index[name] for name in column], dtype=torch.long) for column in columns]
        for _, columns in tables
    ]


def _id_of(name: str, kind: str, table: Table, columns: Columns, vocabulary: Vocabulary | None, limit: int) -> int:
    """The id of a known name, or an id below the limit that is written as such."""
    try:
        if vocabulary is not None:
            return vocabulary.index(name, exact=True)
        return parse_id(table.path, 0, name, f"the {kind}'s id", limit)
    except (DataError, KeyError) as error:
        problem = error.problem if isinstance(error, DataError) else f"expected a known {kind} ({error.args[0]})"
        row = min(column.index(name) for column in columns if name in column)
        raise table.error(row, problem) from None
