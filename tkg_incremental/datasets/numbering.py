"""From the names in a file to ids."""

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


class Numbering:
    """Gives the entities or relations of a table their ids.

    Args:
        kind: What is numbered; used in error messages.
        known: All names by id; others are errors then. By default names are numbered as they occur.
        ids: Whether the table has ids already. Without ``known`` the names are the ids.
    """

    def __init__(self, kind: str, known: Sequence[str] | None = None, ids: bool = False) -> None:
        self.kind, self.ids = kind, ids
        self._known = None if known is None else Vocabulary(known, kind)
        self._size = 0 if known is None else len(known)
        self._seen: dict[str, int] = {}

    def index_columns(self, table: Table, *columns: Sequence[str]) -> list[Tensor]:
        """The ids of whole columns, numbered row by row.

        Args:
            table: The table, for errors.
            columns: Columns of the table, ``F`` names each.

        Returns:
            For each column its ids ``[F]``.
        """
        distinct = dict.fromkeys(chain.from_iterable(zip(*columns, strict=True)))
        if not self.ids and self._known is None:
            for name in distinct:
                self._seen.setdefault(name, len(self._seen))
            ids = self._seen
        else:
            ids = {name: self._index(table, columns, name) for name in distinct}
        return [torch.tensor([ids[name] for name in column], dtype=torch.long) for column in columns]

    def _index(self, table: Table, columns: Sequence[Sequence[str]], name: str) -> int:
        """The id of a known name, or an id that is written as such."""
        try:
            if self._known is not None and not self.ids:
                return self._known.index(name, exact=True)
            limit = _MAX_ID if self._known is None else self._size
            index = parse_id(table.path, 0, name, f"the {self.kind}'s id", limit)
        except (DataError, KeyError) as error:
            known = f"expected a known {self.kind} ({error.args[0]})"
            problem = error.problem if isinstance(error, DataError) else known
            row = min(column.index(name) for column in columns if name in column)
            raise table.error(row, problem) from None
        self._size = max(self._size, index + 1)
        return index

    @property
    def names(self) -> list[str]:
        """The name of every id so far."""
        if self._known is not None:
            return self._known.names
        return [str(index) for index in range(self._size)] if self.ids else list(self._seen)

    def __repr__(self) -> str:
        return f"Numbering({len(self.names)} × {self.kind})"
