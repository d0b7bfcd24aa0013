from __future__ import annotations

import hashlib
from functools import cached_property
from importlib.resources import as_file, files
from itertools import compress
from pathlib import Path
from typing import Any

import torch

from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.datasets.numbering import number_names
from tkg_incremental.datasets.periods import read_periods
from tkg_incremental.datasets.splits import supported_split
from tkg_incremental.datasets.steps import to_steps
from tkg_incremental.datasets.table import load_table

FIRST_YEAR, LAST_YEAR = 1950, 2024

# The handovers that the examples ask about are always in train.
ALWAYS_TRAIN = {
    ("president of", "United States"),
    ("prime minister of", "United Kingdom"),
    ("chancellor of", "Germany"),
}

ALIASES = {
    "USA": "United States",
    "US": "United States",
    "U.S.": "United States",
    "United States of America": "United States",
    "UK": "United Kingdom",
    "U.K.": "United Kingdom",
    "Great Britain": "United Kingdom",
    "USSR": "Soviet Union",
    "GDR": "East Germany",
    "Czechia": "Czech Republic",
    "EU": "European Union",
    "UN": "United Nations",
}


class WorldLeaders(TKGDataset):
    r"""Who led which country, for which party, in which alliance: 1950 to 2024, one step a year.

    A small dataset of real facts that comes with the package, so that examples work offline and a person can
    judge the answers. A year stands for its last day: in 2021 the president of the United States is Joe Biden.

    One fact in ten each is set aside for validation and test, such that the rest supports it: in every year
    of such a fact, its head and its tail occur in train facts of that year, and its relation in train facts
    of that year or before.

    Args:
        root: Folder of the dataset. :obj:`None` builds it in memory, which takes a moment.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    def __init__(self, root: str | Path | None = None, **kwargs: Any) -> None:
        super().__init__(root, **kwargs)
        self.entities = Vocabulary(self.entities.names, "entity", ALIASES)

    @cached_property
    def variant(self) -> str:
        # A later release may come with other facts.
        return f"world_leaders-{hashlib.sha256(_packaged().read_bytes()).hexdigest()[:16]}"

    def build(self) -> Graph:
        axis = TimeAxis.from_range(FIRST_YEAR, LAST_YEAR)
        with as_file(_packaged()) as path:
            table = load_table(path)
        read_periods(table, "year")
        start, end = table.instants("year")
        kept = end >= FIRST_YEAR  # some facts end before the first step
        heads, rels, tails = (list(compress(names, kept.tolist())) for names in (table.head, table.rel, table.tail))
        entities, ((head, tail),) = number_names("entity", [(table, (heads, tails))])
        relations, ((rel,),) = number_names("relation", [(table, (rels,))])
        facts = torch.stack([head, rel, tail, *to_steps(table, start[kept], end[kept], axis)], dim=1)
        movable = [pair not in ALWAYS_TRAIN for pair in zip(rels, tails, strict=True)]
        chosen = supported_split(facts.tolist(), movable, axis.num_steps, val=0.1, test=0.1, seed=0)
        splits = {split: facts[[name == split for name in chosen]] for split in SPLITS}
        return Graph(splits, entities, relations, axis)


def _packaged() -> Any:
    return files("tkg_incremental.datasets") / "world_leaders.tsv"
