"""What all datasets share: building once, caching, and handing out snapshots."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor
from torch_geometric.data import InMemoryDataset

from tkg_incremental.data import FactTable, Snapshot, TimeAxis, Timeline, Vocabulary
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified

logger = logging.getLogger(__name__)

# Part of the cache's file name: a change of the layout below must not meet an old file.
_LAYOUT = 2


@dataclass
class Graph:
    """What a dataset builds from its sources.

    Args:
        splits: Rows ``[N, 4]`` of ``"train"``, ``"val"`` and ``"test"``.
        entity_names: The name of every entity.
        relation_names: The name of every relation.
        axis: What each step stands for.
    """

    splits: dict[str, Tensor]
    entity_names: list[str]
    relation_names: list[str]
    axis: TimeAxis

    def state(self) -> dict[str, Any]:
        shape = (len(self.entity_names), len(self.relation_names), self.axis.num_steps)
        # Sorted once here instead of at each opening. Ids fit 32 bits for any graph that fits this machine:
        # half the file, half the reading.
        rows = {name: FactTable(split, *shape).rows.to(torch.int32) for name, split in self.splits.items()}
        axis = {"first": list(self.axis.first), "last": list(self.axis.last), "unit": self.axis.unit}
        # Each list of names as one string: a million of them are slow to unpickle one by one.
        names = {"entities": json.dumps(self.entity_names), "relations": json.dumps(self.relation_names)}
        return {"splits": rows, "axis": axis, **names}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Graph:
        axis = TimeAxis(tuple(state["axis"]["first"]), tuple(state["axis"]["last"]), state["axis"]["unit"])
        splits = {name: split.to(torch.int64) for name, split in state["splits"].items()}
        return cls(splits, json.loads(state["entities"]), json.loads(state["relations"]), axis)


class TKGDataset(InMemoryDataset):
    """A temporal knowledge graph as a sequence of :class:`~tkg_incremental.data.Snapshot`.

    Subclasses write :meth:`build` (and :meth:`download` with :attr:`raw_file_names` if there is something to
    fetch); :attr:`variant` must name every option that changes what is built.

    Args:
        root: Where the dataset is kept. :obj:`None` builds it in memory, where nothing has to be fetched.
        transform: Applied to each snapshot when it is accessed.
        force_reload: Build anew even if a cached version is there.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        transform: Callable[[Snapshot], Any] | None = None,
        force_reload: bool = False,
    ) -> None:
        self._cached = root is not None
        if root is None:
            super().__init__(None, transform)
            graph = self.build()
        else:
            root = Path(root).expanduser()
            root.mkdir(parents=True, exist_ok=True)
            with FileLock(root / ".lock"):
                super().__init__(str(root), transform, log=False, force_reload=force_reload)
                graph = self._load()
        self.timeline = Timeline(graph.splits, len(graph.entity_names), len(graph.relation_names), graph.axis)
        self.entities = Vocabulary(graph.entity_names, "entity")
        self.relations = Vocabulary(graph.relation_names, "relation")

    def build(self) -> Graph:
        """Makes the graph from its sources."""
        raise NotImplementedError

    @property
    def variant(self) -> str:
        """Names the options that change what is built; part of the cache's file name."""
        return "default"

    # Caching -------------------------------------------------------------------------------------------

    @property
    def processed_file_names(self) -> str:
        return f"{self.variant}.v{_LAYOUT}.pt"

    @property
    def has_download(self) -> bool:
        return self._stale and super().has_download

    @property
    def has_process(self) -> bool:
        return self._stale

    @property
    def _stale(self) -> bool:
        # What is cached needs no source: it opens offline, and after the raw files are gone.
        return self._cached and (self.force_reload or not Path(self.processed_paths[0]).exists())

    def _process(self) -> None:
        # Instead of PyG's, which keeps notes about `pre_transform` beside the cache that no checksum guards.
        self.process()

    def process(self) -> None:
        path = Path(self.processed_paths[0])
        for half in path.parent.glob(f".{path.name}.*.tmp"):  # what a killed process left; nobody else has the lock
            half.unlink(missing_ok=True)
        save_verified({"dataset": type(self).__name__, **self.build().state()}, path)

    def _load(self) -> Graph:
        try:
            return self._read_cache()
        except CorruptFileError as error:
            logger.warning("%s; it is built anew", error)
            self.process()
            return self._read_cache()

    def _read_cache(self) -> Graph:
        path, mine = self.processed_paths[0], type(self).__name__
        state = load_verified(path)
        if not isinstance(state, dict) or not state.keys() >= {"splits", "axis", "entities", "relations"}:
            raise CorruptFileError(path, "it holds no dataset")
        if state.get("dataset", mine) != mine:
            raise CorruptFileError(path, f"it is the cache of {state['dataset']} (expected {mine})")
        return Graph.from_state(state)

    # Snapshots -----------------------------------------------------------------------------------------

    def len(self) -> int:
        return self.num_steps

    def get(self, idx: int) -> Snapshot:
        return Snapshot(self.timeline, idx)

    @property
    def num_entities(self) -> int:
        return self.timeline.num_entities

    @property
    def num_relations(self) -> int:
        return self.timeline.num_relations

    @property
    def num_steps(self) -> int:
        return self.timeline.num_steps

    @property
    def entity_names(self) -> list[str]:
        return self.entities.names

    @property
    def relation_names(self) -> list[str]:
        return self.relations.names

    def step_of(self, when: str | int) -> int:
        """The step that covers a date or year."""
        return self.timeline.axis.step_of(when)

    def __repr__(self) -> str:
        line = self.timeline
        return (
            f"{type(self).__name__}({len(self)} steps {line.labels[0]} … {line.labels[-1]}, "
            f"{line.num_entities} entities, {line.num_relations} relations, "
            f"{len(line.train)} / {len(line.val)} / {len(line.test)} rows)"
        )
