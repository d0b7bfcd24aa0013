from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot, TimeAxis, bin_by_count, expand_intervals, parse_instant
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.datasets.lines import DataError, read_names
from tkg_incremental.datasets.numbering import Numbering
from tkg_incremental.datasets.splits import random_split
from tkg_incremental.datasets.table import Fact, Source, is_frame, read_table, source_name, steps_of
from tkg_incremental.ops.keys import pack

_UNITS = ("year", "day", "index")


class TabularTKG(TKGDataset):
    r"""Your own facts, from TSV or CSV files or pandas data frames.

    A line is ``head, rel, tail, time`` or ``head, rel, tail, start, end``, both ends included; an empty
    field, ``-``, ``?`` or ``####-##-##`` is an open end. A header is optional, and is recognised by the
    names of its columns; then their order does not matter, and others are passed over.

    .. code-block:: python

        TabularTKG("facts.tsv")
        TabularTKG(train="train.csv", val="valid.csv", test="test.csv", binning="count", root="data/mine")

    Args:
        facts: A file or data frame with all facts, which are split at random: all rows of a triple together.
        train: A file or data frame with the train facts, instead of ``facts``.
        val: The validation facts, with ``train``; none by default.
        test: The test facts, with ``train``; none by default.
        root: Where the built dataset is kept, under a name made from the content of the files and the
            options. :obj:`None` builds it in memory.
        binning: What a step is. ``"year"`` or ``"day"``: each one from the first to the last that occurs;
            ``"index"``: times are steps already; ``"count"``: see :func:`~tkg_incremental.data.bin_by_count`,
            over the starts and ends of the train facts; or the first instants of all steps, as in
            ``[1950, 1990, 2000]``; or a :class:`~tkg_incremental.data.TimeAxis`.
        unit: With ``"count"`` or given steps: what an instant is, ``"year"``, ``"day"`` or ``"index"``.
        threshold: With ``"count"``: a step is closed as soon as it counts more starts and ends than this.
        ids: Whether heads, relations and tails are written as ids instead of names.
        entities: The names of all entities by id, as a list or a file of ``name ⇥ id`` lines. By default they
            are numbered as they occur, and with ``ids`` the ids are the names.
        relations: The same for relations.
        columns: The names of the columns, for files without a header; see the names above.
        delimiter: What separates the fields; by default a comma in files called ``*.csv``, else a tab.
        val_share: The share of triples for validation, with ``facts``.
        test_share: The share of triples for test, with ``facts``.
        seed: Seed of the split, with ``facts``.
        transform: Applied to each snapshot when it is accessed.
        force_reload: Build anew even if a cached version is there.
    """

    def __init__(
        self,
        facts: Source | None = None,
        *,
        train: Source | None = None,
        val: Source | None = None,
        test: Source | None = None,
        root: str | Path | None = None,
        binning: str | Sequence[str | int] | TimeAxis = "year",
        unit: str = "year",
        threshold: int = 300,
        ids: bool = False,
        entities: str | os.PathLike[str] | Sequence[str] | None = None,
        relations: str | os.PathLike[str] | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        delimiter: str | None = None,
        val_share: float = 0.1,
        test_share: float = 0.1,
        seed: int = 0,
        transform: Callable[[Snapshot], Any] | None = None,
        force_reload: bool = False,
    ) -> None:
        if (facts is None) == (train is None):
            raise ValueError("give either facts (to be split) or train (with val and test), and not both")
        if facts is not None and not (val is None and test is None):
            raise ValueError("val and test go with train; facts are split by val_share and test_share")
        if isinstance(binning, str) and binning not in (*_UNITS, "count"):
            raise ValueError(f"binning must be 'year', 'day', 'index', 'count' or steps (got {binning!r})")
        if unit not in _UNITS:
            raise ValueError(f"unit must be one of {_UNITS} (got {unit!r})")
        given = {"facts": facts, "train": train, "val": val, "test": test}
        self._sources = {name: source for name, source in given.items() if source is not None}
        for name, source in self._sources.items():
            if not is_frame(source) and not source_name(source).is_file():
                raise FileNotFoundError(f"{name} must be a file (there is no '{source_name(source)}')")
        self._binning, self._threshold, self._unit = binning, threshold, unit
        if isinstance(binning, TimeAxis):
            self._unit = binning.unit
        elif isinstance(binning, str) and binning != "count":
            self._unit = binning
        self._ids, self._columns, self._delimiter = ids, columns, delimiter
        self._entities, self._relations = (
            read_names(names) if isinstance(names, (str, os.PathLike)) else names for names in (entities, relations)
        )
        self._shares, self._seed = (val_share, test_share), seed
        super().__init__(root, transform, force_reload)

    @cached_property
    def variant(self) -> str:
        options = (
            *(self._binning, self._unit, self._threshold, self._ids, self._entities, self._relations),
            *(self._columns, self._delimiter, self._shares, self._seed),
        )
        digest = hashlib.sha256(repr(options).encode())
        for name, source in self._sources.items():
            path = source_name(source)
            content = repr(self._read(source)).encode() if is_frame(source) else path.read_bytes()
            digest.update(f"{name} {path.suffix} {len(content)}\n".encode() + content)
        return f"tabular-{digest.hexdigest()[:16]}"

    def build(self) -> Graph:
        tables = {name: self._read(source) for name, source in self._sources.items()}
        axis = self._axis(tables)
        entities = Numbering("entity", self._entities, self._ids)
        relations = Numbering("relation", self._relations, self._ids)
        intervals = {}
        for name, facts in tables.items():
            path = source_name(self._sources[name])
            columns = [
                (
                    entities.index(path, fact.line, fact.head),
                    relations.index(path, fact.line, fact.rel),
                    entities.index(path, fact.line, fact.tail),
                    *steps_of(path, fact, axis),
                )
                for fact in facts
            ]
            intervals[name] = torch.tensor(columns, dtype=torch.long)
        if "facts" in intervals:
            intervals = self._split(intervals["facts"], len(entities.names), len(relations.names))
        none = torch.empty(0, 5, dtype=torch.long)
        splits = {}
        for split in SPLITS:
            triples, start, end = intervals.get(split, none).tensor_split((3, 4), dim=1)
            splits[split] = expand_intervals(triples, start[:, 0], end[:, 0])
        return Graph(splits, entities.names, relations.names, axis)

    def _read(self, source: Source) -> list[Fact]:
        return read_table(source, self._unit, self._columns, self._delimiter)

    def _split(self, facts: Tensor, num_entities: int, num_relations: int) -> dict[str, Tensor]:
        triples = pack([facts[:, 0], facts[:, 1], facts[:, 2]], [num_entities, num_relations, num_entities])
        group = torch.unique(triples, return_inverse=True)[1]
        masks = random_split(group, *self._shares, seed=self._seed)
        return {split: facts[mask] for split, mask in masks.items()}

    def _axis(self, tables: dict[str, list[Fact]]) -> TimeAxis:
        if isinstance(self._binning, TimeAxis):
            return self._binning
        instants = {name: _instants(facts) for name, facts in tables.items()}
        occurring = [instant for values in instants.values() for instant in values]
        main = next(iter(tables))
        if not instants[main]:
            raise DataError(source_name(self._sources[main]), None, "expected a fact with a start or an end")
        first, last = min(occurring), max(occurring)
        if self._binning == "count":
            axis = bin_by_count(instants[main], self._threshold, self._unit)
            # What the other splits have outside the train facts' time belongs to the outermost steps.
            return TimeAxis((first, *axis.first[1:]), (*axis.last[:-1], last), self._unit)
        if isinstance(self._binning, str):
            return TimeAxis.from_instants(range(0 if self._unit == "index" else first, last + 1), self._unit)
        begins = [parse_instant(str(begin), self._unit) for begin in self._binning]
        if not begins or any(a >= b for a, b in pairwise(begins)):
            raise ValueError(f"binning must give the first instants of the steps, ascending (got {begins})")
        ends = [begin - 1 for begin in begins[1:]]
        return TimeAxis(tuple(begins), (*ends, max(last, begins[-1])), self._unit)


def _instants(facts: list[Fact]) -> list[int]:
    return [instant for fact in facts for instant in (fact.start, fact.end) if instant is not None]
