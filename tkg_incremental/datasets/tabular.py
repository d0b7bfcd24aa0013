from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data import Snapshot, TimeAxis
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.datasets.lines import read_names
from tkg_incremental.datasets.numbering import number_names
from tkg_incremental.datasets.options import Holdout, ReadOptions
from tkg_incremental.datasets.readers import Source, is_delimited, is_frame, source_name
from tkg_incremental.datasets.splits import random_split
from tkg_incremental.datasets.steps import check_binning, make_axis, read_dates, to_steps
from tkg_incremental.datasets.table import load_table
from tkg_incremental.ops.keys import pack

logger = logging.getLogger(__name__)


class TabularTKG(TKGDataset):
    r"""Your own facts, from delimited text, JSON lines, Parquet files or pandas data frames.

    A row is ``head, rel, tail, time`` or ``head, rel, tail, start, end``, both ends included. An empty field, ``-``,
    ``?``, ``####-##-##``, ``NULL`` or ``9999-12-31`` is an open end. The columns may have a header with usual names
    (``subject``, ``Valid From``, …), in any order; other columns are not read.

    Dates are read as they come: ``2024-01-05T08:30:00``, ``2024-01-05``, ``2024-W03``, ``2024-01``, ``2024-Q2``,
    ``2024``, Unix seconds. A time with a zone is converted to UTC. An interval in dates coarser than the unit starts
    with the first one and ends with the last one: at unit ``"day"``, an end in ``2024-02`` is 29 February.

    .. code-block:: python

        TabularTKG("facts.tsv")
        TabularTKG("contracts.csv", unit="month", read=ReadOptions(columns={"head": "Employee"}, dayfirst=True))
        TabularTKG("train.csv", val="valid.csv", test="test.csv", binning="count", root="data/mine")

    Args:
        facts: A file or data frame. All of its facts are learnt, but for those that ``holdout`` withholds.
        val: A file or data frame with validation facts.
        test: A file or data frame with test facts.
        root: Where the built dataset is kept, under a name made from the content of the files and the options.
            :obj:`None` builds it in memory.
        unit: What an instant counts: ``"hour"``, ``"day"``, ``"week"``, ``"month"``, ``"quarter"``, ``"year"`` or
            ``"index"`` (times are steps already). ``"auto"`` chooses it by the dates, see
            :func:`~tkg_incremental.datasets.time_units.choose_unit` and :attr:`unit_reason`.
        binning: What a step is. :obj:`None`: one unit, from the first to the last date that occurs; a number, or
            ``"count"`` for 300: as many units as it takes to have more starts and ends than this among the train
            facts (:func:`~tkg_incremental.data.bin_by_count`); or the first instants of all steps, as in
            ``[1950, 1990, 2000]`` or ``pd.date_range(…)``; or a :class:`~tkg_incremental.data.TimeAxis`.
        read: How files are read: columns, delimiter, format of dates, names.
        holdout: The share of triples to withhold, half for validation and half for test, with all their facts; or a
            :class:`~tkg_incremental.datasets.options.Holdout`. See :attr:`held_out`.
        transform: Applied to each snapshot when it is accessed.
        force_reload: Build again even if a cached version exists.
    """

    def __init__(
        self,
        facts: Source,
        val: Source | None = None,
        test: Source | None = None,
        *,
        root: str | Path | None = None,
        unit: str = "auto",
        binning: str | int | Sequence[Any] | TimeAxis | None = None,
        read: ReadOptions | None = None,
        holdout: float | Holdout = 0.0,
        transform: Callable[[Snapshot], Any] | None = None,
        force_reload: bool = False,
    ) -> None:
        read = read or ReadOptions()
        self._holdout = Holdout.of(holdout)
        if (val is not None or test is not None) and holdout != 0.0:
            raise ValueError(f"holdout has no effect where val or test are given: leave it out (got {holdout})")
        self._unit, self._binning = unit, check_binning(binning, unit, read)
        given = {"train": facts, "val": val, "test": test}
        self._sources = {name: source for name, source in given.items() if source is not None}
        for name, source in self._sources.items():
            if not is_frame(source) and not source_name(source).is_file():
                argument = "facts" if name == "train" else name
                raise FileNotFoundError(f"{argument} must be a file (there is no '{source_name(source)}')")
        if read.delimiter is not None and not any(map(is_delimited, self._sources.values())):
            raise ValueError(f"delimiter has no effect without a delimited file: leave it out (got {read.delimiter!r})")
        names = {kind: getattr(read, kind) for kind in ("entities", "relations")}
        names = {kind: read_names(n) if isinstance(n, (str, os.PathLike)) else n for kind, n in names.items()}
        self._read = dataclasses.replace(read, **names)
        self._reason: str | None = None
        super().__init__(root, transform, force_reload)
        if any(self.held_out.values()):
            logger.info("%d triples are held out for validation, %d for test", *self.held_out.values())

    @cached_property
    def variant(self) -> str:
        digest = hashlib.sha256(repr((self._unit, self._binning, self._read, self._holdout)).encode())
        for name, source in self._sources.items():
            path = source_name(source)
            content = _frame_bytes(source) if is_frame(source) else path.read_bytes()
            digest.update(f"{name} {path.suffix} {len(content)}\n".encode() + content)
        return f"tabular-{digest.hexdigest()[:16]}"

    def build(self) -> Graph:
        columns, delimiter = self._read.columns, self._read.delimiter
        tables = {
            name: load_table(source, columns, delimiter if is_delimited(source) else None)
            for name, source in self._sources.items()
        }
        unit, self._reason = read_dates(list(tables.values()), self._binning, self._unit, self._read)
        logger.info("unit of time: %s (%s)", unit, self._reason)
        instants = [table.instants(unit) for table in tables.values()]
        axis = make_axis(instants, self._binning, unit, self._read, tables["train"])
        ends, rels = ([(t, (t.head, t.tail)) for t in tables.values()], [(t, (t.rel,)) for t in tables.values()])
        entities, end_ids = number_names("entity", ends, self._read.entities, self._read.ids)  # type: ignore[arg-type]
        relations, rel_ids = number_names("relation", rels, self._read.relations, self._read.ids)  # type: ignore[arg-type]
        facts = dict.fromkeys(SPLITS, torch.empty(0, 5, dtype=torch.long))
        ids = zip(tables.items(), end_ids, rel_ids, instants, strict=True)
        for (name, table), (head, tail), (rel,), (start, end) in ids:
            facts[name] = torch.stack([head, rel, tail, *to_steps(table, start, end, axis)], dim=1)
        if self._holdout.val or self._holdout.test:
            facts = self._withhold(facts["train"], len(entities), len(relations))
        return Graph(facts, entities, relations, axis)

    @property
    def unit_reason(self) -> str:
        """The unit of the time axis, and why it is this one."""
        chosen = "as chosen from the dates when this dataset was cached" if self._unit == "auto" else "as asked for"
        return f"{self.timeline.axis.unit}: {self._reason or chosen}"

    @property
    def held_out(self) -> dict[str, int]:
        """Number of triples with validation facts and with test facts."""
        splits = {name: self.timeline.split(name).facts[:, :3] for name in SPLITS[1:]}
        return {name: len(torch.unique(triples, dim=0)) for name, triples in splits.items()}

    def _withhold(self, facts: Tensor, num_entities: int, num_relations: int) -> dict[str, Tensor]:
        triples = pack([facts[:, 0], facts[:, 1], facts[:, 2]], [num_entities, num_relations, num_entities])
        group = torch.unique(triples, return_inverse=True)[1]
        masks = random_split(group, self._holdout)
        return {split: facts[mask] for split, mask in masks.items()}


def _frame_bytes(frame: Any) -> bytes:
    return repr([list(frame.columns), *frame.itertuples(index=False, name=None)]).encode("utf-8", "backslashreplace")
