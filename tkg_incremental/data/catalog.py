"""Names and times of a dataset, without its facts."""

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
    """Vocabularies, time axis and first steps of entities. A run saves it, so that queries by name need no dataset.

    Args:
        entities: Names of the entities.
        relations: Names of the relations.
        axis: What each step stands for.
        first_seen: ``[num_entities]`` first step with a fact of the entity.
    """

    entities: Vocabulary
    relations: Vocabulary
    axis: TimeAxis
    first_seen: Tensor

    @classmethod
    def from_dataset(cls, dataset: TKGDataset) -> Catalog:
        timeline = dataset.timeline
        return cls(dataset.entities, dataset.relations, timeline.axis, timeline.first_seen.cpu())

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
