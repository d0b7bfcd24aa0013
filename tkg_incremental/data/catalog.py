"""Names, times and known facts of a dataset: what answers by name need beside a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tkg_incremental.datasets.base import TKGDataset


@dataclass(frozen=True)
class Catalog:
    """Vocabularies, time axis and train facts. A run saves it, so that questions by name need no dataset.

    Args:
        entities: Names of the entities.
        relations: Names of the relations.
        axis: What each step stands for.
        first_seen: ``[num_entities]`` first step with a fact of the entity.
        facts: ``[F, 5]`` train facts, merged: head, rel, tail, first and last step, as 32-bit integers.
        last_step: The last step that the model learnt; by default the last of the axis.
        calibration: State of the :class:`~tkg_incremental.metrics.calibration.AnswerCalibration`, if there is one.
    """

    entities: Vocabulary
    relations: Vocabulary
    axis: TimeAxis
    first_seen: Tensor
    facts: Tensor
    last_step: int | None = None
    calibration: dict[str, Any] | None = None

    @classmethod
    def from_dataset(cls, dataset: TKGDataset) -> Catalog:
        timeline = dataset.timeline
        facts = timeline.observed.facts.to("cpu", torch.int32)
        return cls(dataset.entities, dataset.relations, timeline.axis, timeline.first_seen.cpu(), facts)

    def state(self) -> dict[str, Any]:
        return {
            "entities": self.entities.names,
            "relations": self.relations.names,
            "aliases": {"entities": self.entities.aliases, "relations": self.relations.aliases},
            "axis": {"first": _pack(self.axis.first), "last": _pack(self.axis.last), "unit": self.axis.unit},
            "first_seen": self.first_seen,
            "facts": self.facts,
            "last_step": self.last_step,
            "calibration": self.calibration,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Catalog:
        axis = TimeAxis(_unpack(state["axis"]["first"]), _unpack(state["axis"]["last"]), state["axis"]["unit"])
        entities = Vocabulary(state["entities"], "entity", state["aliases"]["entities"])
        relations = Vocabulary(state["relations"], "relation", state["aliases"]["relations"])
        facts = state["facts"].cpu()
        return cls(entities, relations, axis, state["first_seen"], facts, state["last_step"], state["calibration"])


def _pack(instants: Sequence[int]) -> dict[str, int] | list[int]:
    """Consecutive instants as their bounds: an axis of days has many."""
    steps = range(instants[0], instants[-1] + 1)
    if instants == steps or (len(steps) == len(instants) and tuple(instants) == tuple(steps)):
        return {"start": steps.start, "stop": steps.stop}
    return list(instants)


def _unpack(state: dict[str, int] | list[int]) -> Sequence[int]:
    return range(state["start"], state["stop"]) if isinstance(state, dict) else tuple(state)
