"""The base class of all datasets: built once, cached, and read as a sequence of snapshots."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor
from torch_geometric.data import Dataset

from tkg_incremental.data import FactTable, Snapshot, TimeAxis, Timeline, Vocabulary
from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified

logger = logging.getLogger(__name__)

# Part of the cache's file name, so that files of another layout are not read.
_LAYOUT = 3


@dataclass
class Graph:
    """What a dataset builds from its sources.

    Args:
        splits: Facts ``[F, 5]`` (head, rel, tail, first step, last step) of ``"train"``, ``"val"`` and ``"test"``.
        entity_names: The name of every entity.
        relation_names: The name of every relation.
        axis: What each step stands for.
        entity_aliases: Further names of entities, with the ids they stand for. They are not cached.
    """

    splits: dict[str, Tensor]
    entity_names: list[str]
    relation_names: list[str]
    axis: TimeAxis
    entity_aliases: dict[str, str | int] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        shape = (len(self.entity_names), len(self.relation_names), self.axis.num_steps)
        # Sorted once here instead of at each opening. 32 bits are enough for ids and steps, and halve the file.
        facts = {name: FactTable(split, *shape).facts.to(torch.int32) for name, split in self.splits.items()}
        axis = {"first": list(self.axis.first), "last": list(self.axis.last), "unit": self.axis.unit}
        # Each list of names as one string: a million of them are slow to unpickle one by one.
        names = {"entities": json.dumps(self.entity_names), "relations": json.dumps(self.relation_names)}
        return {"splits": facts, "axis": axis, **names}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Graph:
        axis = TimeAxis(tuple(state["axis"]["first"]), tuple(state["axis"]["last"]), state["axis"]["unit"])
        splits = {name: split.to(torch.int64) for name, split in state["splits"].items()}
        return cls(splits, json.loads(state["entities"]), json.loads(state["relations"]), axis)


class TKGDataset(Dataset):
    """A temporal knowledge graph as a sequence of :class:`~tkg_incremental.data.Snapshot`.

    A snapshot is read by step (``dataset[3]``) or by date (``dataset["1997"]``); slices (``dataset[10:20]``,
    ``dataset["1990":"1999"]``) are datasets of some of the steps. A slice by dates includes both ends.

    Subclasses write :meth:`build` (and :meth:`download` with :attr:`raw_file_names` if there is something to
    fetch); :attr:`variant` must name every option that changes what is built.

    Args:
        root: Folder of the dataset, of this one alone. :obj:`None` builds it in memory if nothing has to be downloaded.
        transform: Applied to each snapshot when it is accessed.
        force_reload: Build the dataset even if a cached version exists.
        pre_transform: Not supported: snapshots are made when they are accessed and not saved. Use ``transform``.
        pre_filter: Not supported: steps must stay consecutive. Use a slice.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        transform: Callable[[Snapshot], Any] | None = None,
        force_reload: bool = False,
        pre_transform: None = None,
        pre_filter: None = None,
    ) -> None:
        if pre_transform is not None:
            raise ValueError(
                "pre_transform is not supported: snapshots are made when they are accessed (use transform instead)"
            )
        if pre_filter is not None:
            raise ValueError("pre_filter is not supported: steps must stay consecutive (use a slice instead)")
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
        self.entities = Vocabulary(graph.entity_names, "entity", graph.entity_aliases)
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
        # A cached dataset opens offline and without its raw files.
        return self._cached and (self.force_reload or not Path(self.processed_paths[0]).exists())

    def _process(self) -> None:
        # PyG's own method writes files about pre_transform beside the cache, without a checksum.
        self.process()

    def process(self) -> None:
        path = Path(self.processed_paths[0])
        for half in path.parent.glob(f".{path.name}.*.tmp"):  # left by a killed process; this one has the lock
            half.unlink(missing_ok=True)
        save_verified({"dataset": type(self).__name__, **self.build().state()}, path)

    def _load(self) -> Graph:
        try:
            return self._read_cache()
        except CorruptFileError as error:
            logger.warning("%s; it is built again", error)
            self.process()
            return self._read_cache()

    def _read_cache(self) -> Graph:
        path, mine = self.processed_paths[0], type(self).__name__
        state = load_verified(path)
        if not isinstance(state, dict) or not state.keys() >= {"splits", "axis", "entities", "relations"}:
            raise CorruptFileError(path, "it holds no dataset")
        if state.get("dataset", mine) != mine:
            raise CorruptFileError(
                path, f"it is the cache of {state['dataset']} (expected {mine}): give each dataset a folder of its own"
            )
        return Graph.from_state(state)

    # Snapshots -----------------------------------------------------------------------------------------

    def len(self) -> int:
        return self.num_steps

    def get(self, idx: int) -> Snapshot:
        return Snapshot(self.timeline, idx)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, str):
            return super().__getitem__(self._position(idx))
        if isinstance(idx, int) and not -len(self) <= idx < len(self):
            raise IndexError(f"step must lie in 0 … {len(self) - 1} (got {idx})")
        if isinstance(idx, slice) and isinstance(idx.start, str | None) and isinstance(idx.stop, str | None):
            start = None if idx.start is None else self._position(idx.start)
            stop = None if idx.stop is None else self._position(idx.stop) + 1
            idx = slice(start, stop, idx.step)
        return super().__getitem__(idx)

    def _position(self, when: str) -> int:
        """The position of a date's step in this dataset, which may be a slice."""
        step = self.step_of(when)
        if step not in self.indices():
            raise IndexError(f"this slice does not include {when!r} (got a slice of {self._describe_steps()})")
        return list(self.indices()).index(step)

    def to(self, device: torch.device | str) -> TKGDataset:
        """A copy whose facts are on another device."""
        dataset = copy.copy(self)
        dataset.timeline = self.timeline.to(device)
        return dataset

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
        """The step that includes a date or year."""
        return self.timeline.axis.step_of(when)

    def _describe_steps(self) -> str:
        steps, labels = self.indices(), self.timeline.labels
        if len(steps) == 0:
            return "0 steps"
        whole = "" if len(steps) == self.num_steps else f" of {self.num_steps}"
        return f"{len(steps)}{whole} steps {labels[steps[0]]} … {labels[steps[-1]]}"

    def __repr__(self) -> str:
        tables = [self.timeline.split(name) for name in SPLITS]
        if self._indices is None:
            rows = [table.num_rows for table in tables]
            facts = f", {' / '.join(str(len(table)) for table in tables)} facts"
        else:
            rows, facts = [sum(table.num_at(step) for step in self.indices()) for table in tables], ""
        return (
            f"{type(self).__name__}({self._describe_steps()}, {self.num_entities} entities, "
            f"{self.num_relations} relations, {' / '.join(map(str, rows))} rows{facts})"
        )
