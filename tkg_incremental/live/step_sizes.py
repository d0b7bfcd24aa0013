"""How far rows may move in an update that does not visit every fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from tkg_incremental.live.store import FactStore
from tkg_incremental.models.base import TKGModel

_COUNT = "SELECT (SELECT count(*) FROM facts WHERE head = ?) + (SELECT count(*) FROM facts WHERE tail = ?)"


def sums_by_facts(
    model: TKGModel, learnt: dict[str, int], entities: Iterable[int], store: FactStore, unit: float = 1e-5
) -> Callable[[str, Tensor], Tensor]:
    """Initial sums of squared gradients of Adagrad, for graphs with more facts than an update visits.

    Each fact that depends on a row counts as one squared gradient, so that a row moves less the more facts would be
    wrong without it: an entity by the number of its facts, a relation and a new step, which begins with the row of the
    last one, by that of all facts. New entities and relations have no facts yet. Entities that no change is about, and
    earlier steps, stay where they are and are not written.

    Args:
        model: The model.
        learnt: Rows of each axis that were learnt before.
        entities: The entities that changes are about.
        store: The facts.
        unit: The squared gradient of a fact.

    Returns:
        A function that gives the sums of rows of a table, ``[n] → [n, 1]``.
    """
    shared, by_entity = unit * store.num_facts, torch.full((model.sizes["entity"], 1), torch.inf)
    by_entity[learnt["entity"] :] = 0.0
    for entity in entities:
        if entity < learnt["entity"]:
            (count,) = store.connection.execute(_COUNT, (entity, entity)).fetchone()
            by_entity[entity] = unit * count

    def sums(name: str, rows: Tensor) -> Tensor:
        axis = model.axes[name]
        if axis == "entity":
            return by_entity[rows]
        old, new = (shared, 0.0) if axis == "relation" else (torch.inf, shared)
        return torch.where(rows < learnt[axis], old, new)[:, None]

    return sums
