"""The published benchmarks: their file format, download, and conversion from years to steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import torch

from tkg_incremental.data import FactTable, TimeAxis, bin_by_count
from tkg_incremental.data.intervals import subtract_intervals
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.datasets.download import download
from tkg_incremental.datasets.lines import DataError, parse_id, read_fields, read_names

UPSTREAM = "https://raw.githubusercontent.com/soledad921/ATISE/711e2136e10b54acbdd7a69ad7822837ce5c44c8"
SPLIT_FILES = {"train": "train.txt", "val": "valid.txt", "test": "test.txt"}

_DATE = re.compile(r"(-?[\d#]{1,4})-[\d#]{1,5}-[\d#]{1,2}")
_OPEN, _UNUSABLE = None, -1


class ATISEDataset(TKGDataset):
    """A benchmark in the format of the ATISE repository: ``head, rel, tail, start, end`` by ids.

    Args:
        root: Folder of the dataset.
        single_step_facts: Keep facts that begin and end within one step; the published rows leave them out.
        leak_free: Drop validation and test rows that are also in an earlier split (train, then validation).
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    folder: ClassVar[str]
    checksums: ClassVar[dict[str, str]]

    def __init__(
        self,
        root: str | Path,
        single_step_facts: bool = False,
        leak_free: bool = False,
        **kwargs: Any,
    ) -> None:
        self.single_step_facts, self.leak_free = single_step_facts, leak_free
        super().__init__(root, **kwargs)

    @property
    def raw_file_names(self) -> list[str]:
        return list(self.checksums)

    @property
    def variant(self) -> str:
        parts = ["published" if not self.single_step_facts else "single_step_facts"]
        return "-".join(parts + ["leak_free"] * self.leak_free)

    def download(self) -> None:
        files = {f"{self.folder}/{name}": digest for name, digest in self.checksums.items()}
        download(files, self.raw_dir, UPSTREAM)

    def build(self) -> Graph:
        # Also if the files exist: a damaged one is found by its checksum and downloaded again.
        self.download()
        raw = Path(self.raw_dir)
        entities = [self.readable(name) for name in read_names(raw / "entity2id.txt")]
        relations = [self.readable(name) for name in read_names(raw / "relation2id.txt")]
        facts = {split: read_facts(raw / name, len(entities), len(relations)) for split, name in SPLIT_FILES.items()}
        train = facts["train"]
        years = [year for fact in train for year in fact[3:] if year not in (_OPEN, _UNUSABLE)]
        if not years:
            raise DataError(raw / SPLIT_FILES["train"], None, "expected years of four digits (there are none)")
        axis = bin_by_count(years)
        splits = {}
        for split, rows in facts.items():
            _check_years(raw / SPLIT_FILES[split], rows, axis)
            usable = [fact for fact in rows if _UNUSABLE not in fact[3:]]
            last_step = axis.num_steps - 1
            triples = torch.tensor([fact[:3] for fact in usable], dtype=torch.long).view(-1, 3)
            starts = [0 if a is _OPEN else axis.step_of(a) for *_, a, _ in usable]
            # An end before its start is an error of the source: the end counts as open.
            ends = [last_step if b is _OPEN or (a or 0) > b else axis.step_of(b) for *_, a, b in usable]
            first, last = (torch.tensor(steps, dtype=torch.long) for steps in (starts, ends))
            keep = first <= last if self.single_step_facts else first < last
            splits[split] = torch.cat([triples, first[:, None], last[:, None]], dim=1)[keep]
        graph = Graph(splits, entities, relations, axis)
        return _without_leaks(graph) if self.leak_free else graph

    def readable(self, name: str) -> str:
        """The display name of a name in the raw files."""
        return name


def read_facts(path: Path, num_entities: int, num_relations: int) -> list[tuple[Any, ...]]:
    """``(head, rel, tail, first year, last year)`` of every line.

    A year is :obj:`None` where the interval is open and -1 where the date has no year of four digits.
    """
    return [
        (
            parse_id(path, number, head, "a head", num_entities),
            parse_id(path, number, rel, "a relation", num_relations),
            parse_id(path, number, tail, "a tail", num_entities),
            parse_year(path, number, start),
            parse_year(path, number, end),
        )
        for number, (head, rel, tail, start, end) in read_fields(path, (5,))
    ]


def parse_year(path: Path, line: int, text: str) -> int | None:
    match = _DATE.fullmatch(text)
    if not match:
        raise DataError(path, line, f"expected a date YYYY-MM-DD with # for unknown digits (got {text!r})")
    year = match.group(1)
    if year == "####":
        return _OPEN
    return int(year) if re.fullmatch(r"\d{4}", year) else _UNUSABLE


def _check_years(path: Path, facts: list[tuple[Any, ...]], axis: TimeAxis) -> None:
    """Steps are those of the train facts; a year outside them belongs to none."""
    first, last = axis.first[0], axis.last[-1]
    for year in {year for fact in facts for year in fact[3:] if year not in (_OPEN, _UNUSABLE)}:
        if not first <= year <= last:
            raise DataError(path, None, f"expected years from {first} to {last}, as in the train facts (got {year})")


def _without_leaks(graph: Graph) -> Graph:
    shape = (len(graph.entity_names), len(graph.relation_names), graph.axis.num_steps)
    seen = torch.empty(0, 5, dtype=torch.long)
    for split in SPLITS:
        facts = graph.splits[split]
        graph.splits[split] = subtract_intervals(facts, FactTable(seen, *shape).merged().facts)
        seen = torch.cat([seen, facts])
    return graph
