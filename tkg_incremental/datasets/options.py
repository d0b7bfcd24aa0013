"""Options of :class:`~tkg_incremental.datasets.TabularTKG`, in groups."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Names = str | os.PathLike[str] | Sequence[str]


@dataclass(frozen=True)
class ReadOptions:
    """How facts are read.

    Args:
        columns: Which column is which. A mapping from ``head``, ``rel``, ``tail``, ``time``, ``start`` and ``end`` to
            the name (or the position, from 0) of a column: ``{"head": "Employee", "start": "Hired"}``; columns that it
            leaves out are recognised by their names. Or the names of all columns in order, for files without a header.
        delimiter: What separates the fields; by default tab, comma, semicolon or ``|``, whichever fits the file.
        dayfirst: Read ``03/04/2024`` as 3 April.
        date_format: A format of :meth:`datetime.datetime.strptime` that all dates have, ``"unix"`` or ``"unix_ms"``.
        outliers: ``"error"`` refuses dates far outside of all others (:mod:`~tkg_incremental.datasets.outliers`),
            ``"keep"`` accepts them.
        ids: Whether heads, relations and tails are written as ids instead of names.
        entities: The names of all entities by id, as a list or a file of ``name ⇥ id`` lines. By default they are
            numbered in the order in which they occur; with ``ids`` the ids are the names.
        relations: The same for relations.
    """

    columns: Mapping[str, str | int] | Sequence[str] | None = None
    delimiter: str | None = None
    dayfirst: bool = False
    date_format: str | None = None
    outliers: str = "error"
    ids: bool = False
    entities: Names | None = None
    relations: Names | None = None

    def __post_init__(self) -> None:
        if self.outliers not in ("error", "keep"):
            raise ValueError(f"outliers must be 'error' or 'keep' (got {self.outliers!r})")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ValueError(f"delimiter must be one character (got {self.delimiter!r})")
        if self.dayfirst and self.date_format is not None:
            raise ValueError(f"dayfirst has no effect with date_format={self.date_format!r}: leave it out")


@dataclass(frozen=True)
class Holdout:
    """Facts that are not learnt, but kept for validation and test.

    Args:
        val: The share of triples for validation.
        test: The share of triples for test.
        seed: Seed of the draw.
    """

    val: float = 0.05
    test: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.val, self.test) < 0 or self.val + self.test >= 1:
            raise ValueError(
                f"val and test must be shares that leave facts to train on (got {self.val} and {self.test})"
            )

    @classmethod
    def of(cls, share: float | Holdout) -> Holdout:
        """One number is the share of both together: half for validation, half for test."""
        if isinstance(share, Holdout):
            return share
        if not 0 <= share < 1:
            raise ValueError(f"holdout must be at least 0 and less than 1 (got {share})")
        return cls(share / 2, share / 2)
