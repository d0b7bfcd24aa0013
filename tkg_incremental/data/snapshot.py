"""One step of a temporal knowledge graph, and the changes since the steps before."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.storage import GlobalStorage

from tkg_incremental.data.facts import LazyQuads
from tkg_incremental.data.timeline import SPLITS, Timeline
from tkg_incremental.ops.answers import HEAD, TAIL

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from tkg_incremental.data.catalog import Catalog
    from tkg_incremental.datasets.base import TKGDataset

_QUADS = frozenset((*SPLITS, "added", "removed"))


class _SnapshotStorage(GlobalStorage):
    """Quads are attributes of the graph, also where there are as many of them as nodes or edges."""

    def is_node_attr(self, key: str) -> bool:
        return key not in _QUADS and super().is_node_attr(key)

    def is_edge_attr(self, key: str) -> bool:
        return key not in _QUADS and super().is_edge_attr(key)


class Snapshot(Data):
    """The graph at one step: a :class:`torch_geometric.data.Data` of its train facts and their changes.

    All tensors are part of the data store, so that copies, batches, pickles and ``.to(device)`` include them. Views
    over several steps (:meth:`deleted`, :meth:`replay`, …) read the timeline, which pickles and batches do not include.

    Attributes:
        edge_index: ``[2, E]`` heads and tails of the train facts, each once.
        edge_type: ``[E]`` relations of the train facts.
        train, val, test: ``[n, 4]`` quads (head, rel, tail, time) of each split, repeated ones included.
        added: ``[n, 4]`` train quads that did not hold at the step before.
        removed: ``[n, 4]`` train quads of the step before that no longer hold; their time is the step before.
        time: Index of the step.
        label: What the step stands for, e.g. ``"1997"`` or ``"1998–1999"``.
        num_nodes: Number of entities.

    Args:
        timeline: The graph over time.
        time: Index of the step.
    """

    def __init__(self, timeline: Timeline | None = None, time: int = 0, **kwargs: Any) -> None:
        super().__init__()
        self.__dict__["_store"] = _SnapshotStorage(_parent=self)
        self.__dict__["_timeline"] = timeline  # outside of the store: it is shared, not a part of this step
        if timeline is not None:
            current = timeline.observed.at(time)
            self.edge_index = torch.stack([current[:, HEAD], current[:, TAIL]])
            self.edge_type = current[:, 1].clone()
            self.train = current if timeline.observed is timeline.train else timeline.train.at(time)
            self.val, self.test = timeline.val.at(time), timeline.test.at(time)
            self.added, self.removed = timeline.observed.added(time), timeline.observed.removed(time)
            self.time, self.label = time, timeline.labels[time]
            self.num_nodes = timeline.num_entities
        for key, value in kwargs.items():
            setattr(self, key, value)

    @property
    def timeline(self) -> Timeline:
        """The graph over time."""
        if self._timeline is None:
            raise ValueError(
                f"this {type(self).__name__} has no timeline (pickles and batches do not include it): "
                "take the snapshot from its dataset, or make it with Snapshot(timeline, time)"
            )
        return self._timeline

    @property
    def current(self) -> Tensor:
        """``[E, 4]`` train quads, each once."""
        return self._here(self.timeline.observed.at(self.time))

    def deleted(self, window: int = 10) -> Tensor:
        """Triples that held in the ``window`` steps before and do not hold now, as quads ``[n, 4]`` of this step."""
        return self._here(self.timeline.observed.deleted(self.time, _at_least_one(window)))

    def replay(self, window: int = 10) -> LazyQuads:
        r"""The buffer :math:`B^t`: all train quads of the ``window`` steps before, as virtual rows."""
        past = self.timeline.observed.between(self.time - _at_least_one(window), self.time - 1)
        device = self.edge_index.device
        return past if past.device == device else LazyQuads(past.facts.to(device))

    def boundary_facts(self, window: int = 10) -> Tensor:
        """Quads of the ``window`` steps before at which a triple begins or ends, and all quads of the last step before
        this one: when answers changed, in few rows."""
        return self._here(self.timeline.observed.boundary_facts(self.time - _at_least_one(window), self.time - 1))

    @property
    def known_entities(self) -> Tensor:
        """Entities with a fact of any split up to this step, by first step."""
        return self._here(self.timeline.known_entities(self.time))

    def to_dataframe(self, names: TKGDataset | Catalog | None = None) -> pd.DataFrame:
        """The quads of all splits as a data frame with the columns head, rel, tail, time and split.

        Args:
            names: A dataset or catalog whose names replace the ids.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_dataframe needs pandas (pip install pandas)") from error
        parts = [pd.DataFrame(self[name].cpu().numpy(), columns=["head", "rel", "tail", "time"]) for name in SPLITS]
        frame = pd.concat([part.assign(split=name) for name, part in zip(SPLITS, parts, strict=True)])
        if names is not None:
            for column, vocabulary in zip(
                ("head", "rel", "tail"), (names.entities, names.relations, names.entities), strict=True
            ):
                frame[column] = [vocabulary[index] for index in frame[column]]
            frame["time"] = self.label
        return frame.reset_index(drop=True)

    # torch_geometric ----------------------------------------------------------------------------------------------

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key in _QUADS:  # in a batch, heads and tails refer to the batch's nodes
            return torch.tensor([self.num_nodes, 0, self.num_nodes, 0])
        return super().__inc__(key, value, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_timeline": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Snapshot:
        memo[id(self._timeline)] = self._timeline
        return super().__deepcopy__(memo)

    def _repr_html_(self) -> str:
        sizes = [
            (key, tuple(value.shape) if isinstance(value, Tensor) else value) for key, value in self.to_dict().items()
        ]
        cells = "".join(f"<tr><th>{html.escape(key)}</th><td>{html.escape(str(size))}</td></tr>" for key, size in sizes)
        return f"<table><caption>{type(self).__name__}</caption>{cells}</table>"

    def _here(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.edge_index.device)


def _at_least_one(window: int) -> int:
    if window < 1:
        raise ValueError(f"window must be at least 1 (got {window})")
    return window
