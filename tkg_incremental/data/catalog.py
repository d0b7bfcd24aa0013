"""What it takes to ask a model by name: vocabularies, the time axis, and who is known when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tkg_incremental.datasets.base import TKGDataset


@dataclass
class Catalog:
    """Names and times of a dataset, without its facts. A run keeps it, so that a query needs no dataset.

    Args:
        entities: Names of the entities.
        relations: Names of the relations.
        axis: What each step stands for.
        first_seen: ``[num_entities]`` the step an entity appears first.
    """

    entities: Vocabulary
    relations: Vocabulary
    axis: TimeAxis
    first_seen: Tensor

    @classmethod
    def from_dataset(cls, dataset: TKGDataset) -> Catalog:
        line = dataset.timeline
        return cls(dataset.entities, dataset.relations, line.axis, line.first_seen.cpu())

    def state(self) -> dict[str, Any]:
        return {
            "entities": self.entities.names,
            "relations": self.relations.names,
            "axis": {"first": list(self.axis.first), "last": list(self.axis.last), "unit": self.axis.unit},
            "first_seen": self.first_seen,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Catalog:
        axis = TimeAxis(tuple(state["axis"]["first"]), tuple(state["axis"]["last"]), state["axis"]["unit"])
        entities, relations = Vocabulary(state["entities"], "entity"), Vocabulary(state["relations"], "relation")
        return cls(entities, relations, axis, state["first_seen"])
