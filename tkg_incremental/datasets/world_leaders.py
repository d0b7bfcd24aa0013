from __future__ import annotations

import hashlib
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch

from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.datasets.numbering import Numbering
from tkg_incremental.datasets.splits import Interval, supported_split
from tkg_incremental.datasets.table import read_table, steps_of

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
        entities, relations = Numbering("entity"), Numbering("relation")
        axis = TimeAxis.from_instants(range(FIRST_YEAR, LAST_YEAR + 1))
        with as_file(_packaged()) as path:
            # Some facts of the file end before the first step.
            facts = [fact for fact in read_table(path, "year") if fact.end is None or fact.end >= FIRST_YEAR]
            intervals = [
                Interval(
                    entities.index(path, fact.line, fact.head),
                    relations.index(path, fact.line, fact.rel),
                    entities.index(path, fact.line, fact.tail),
                    *steps_of(path, fact, axis),
                )
                for fact in facts
            ]
        movable = [(fact.rel, fact.tail) not in ALWAYS_TRAIN for fact in facts]
        chosen = supported_split(intervals, movable, axis.num_steps, val=0.1, test=0.1, seed=0)
        splits = {}
        for split in SPLITS:
            columns = [fact for fact, name in zip(intervals, chosen, strict=True) if name == split]
            splits[split] = torch.tensor(columns, dtype=torch.long).view(-1, 5)
        return Graph(splits, entities.names, relations.names, axis)


def _packaged() -> Any:
    return files("tkg_incremental.datasets") / "world_leaders.tsv"
