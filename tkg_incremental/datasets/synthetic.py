from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets.base import Graph, TKGDataset
from tkg_incremental.ops.keys import pack

# Number of draws before a graph counts as too small; each draws the repeated facts of the one before again.
_ROUNDS = 100


class SyntheticTKG(TKGDataset):
    r"""A temporal knowledge graph of any size with a structure that a model can learn.

    - Entities belong to ``num_clusters`` clusters on a circle. Relation :math:`r` leads from an entity of
      cluster :math:`c` to entities of cluster :math:`c + \delta_r`. For every second relation, each phase of
      the time has its own :math:`\delta_r`; a fact follows the one of the step it begins at.
    - Every fact holds for one interval. Step 0 has ``facts_per_step`` train facts; at each later one exactly
      ``added_per_step`` begin and the ``deleted_per_step`` oldest have ended.
    - Half of the entities are known at step 0, and the others appear evenly over the steps. Half of the facts
      that begin at a step are about the entities that come at that step.
    - A validation or test fact has the head, the relation and the interval of a train fact, and another tail
      of the same cluster, so that the answers can be learnt.

    Args:
        root: Folder of the dataset. :obj:`None` builds it in memory.
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        facts_per_step: Train facts at step 0; by default two per entity.
        added_per_step: Train facts that begin at each later step; by default a tenth of ``facts_per_step``.
        deleted_per_step: Train facts that end before each later step; by default as many as are added.
        num_clusters: Number of clusters; by default one for every 10 entities.
        num_phases: Into how many phases the time is divided.
        val: Validation facts for each train fact.
        test: Test facts for each train fact.
        seed: Seed of everything.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        num_entities: int = 1000,
        num_relations: int = 10,
        num_steps: int = 20,
        facts_per_step: int | None = None,
        added_per_step: int | None = None,
        deleted_per_step: int | None = None,
        num_clusters: int | None = None,
        num_phases: int = 4,
        val: float = 0.1,
        test: float = 0.1,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        facts = 2 * num_entities if facts_per_step is None else facts_per_step
        added = facts // 10 if added_per_step is None else added_per_step
        deleted = added if deleted_per_step is None else deleted_per_step
        # Each cluster needs a member at step 0, when half of the entities are known.
        clusters = max(1, num_entities // 10) if num_clusters is None else num_clusters
        _at_least(1, num_entities=num_entities, num_relations=num_relations, num_steps=num_steps)
        _at_least(1, facts_per_step=facts, num_phases=num_phases)
        _at_least(0, added_per_step=added, deleted_per_step=deleted, val=val, test=test)
        if not 1 <= clusters <= (num_entities + 1) // 2:
            raise ValueError(f"num_clusters must lie in 1 … {(num_entities + 1) // 2} (got {clusters})")
        # Number of facts before the first and before the last deletion.
        if num_steps > 1 and deleted > min(facts, facts + (added - deleted) * (num_steps - 2)):
            raise ValueError(
                f"deleted_per_step must leave facts to delete up to the last step (got {deleted}, with "
                f"{facts} facts at step 0, {added} added per step and {num_steps} steps)"
            )
        self._entities, self._relations, self._steps = num_entities, num_relations, num_steps
        self._facts, self._added, self._deleted = facts, added, deleted
        self._clusters, self._phases, self._seed = clusters, num_phases, seed
        self._val, self._test = val, test
        super().__init__(root, **kwargs)

    @property
    def variant(self) -> str:
        return (
            f"e{self._entities}-r{self._relations}-t{self._steps}"
            f"-f{self._facts}-a{self._added}-d{self._deleted}"
            f"-c{self._clusters}-p{self._phases}-val{self._val}-test{self._test}-seed{self._seed}"
        )

    def build(self) -> Graph:
        generator = torch.Generator().manual_seed(self._seed)
        start, end = self._intervals()
        num_train = len(start)
        shift = self._shifts(generator)
        # While building, entities are numbered by first step and dealt to the clusters in turn. So the members
        # of a cluster that are known at some step need no table: c, c + C, c + 2C, … below `known`.
        left = torch.arange(self._steps - 1, -1, -1)
        known = self._entities - self._entities // 2 * left // max(1, self._steps - 1)
        come = known.diff(prepend=known[:1])
        come = torch.where(come > 0, come, known)  # at steps without new entities, all known ones

        # A fact is head, rel, tail and the train fact whose interval it has.
        def begin(at: Tensor) -> Tensor:
            time, rel = start[at], torch.randint(self._relations, at.shape, generator=generator)
            new = torch.rand(len(at), generator=generator) < 0.5
            low = torch.where(new, (known - come)[time], 0)
            head = low + _below(known[time] - low, generator)
            return torch.stack([head, rel, tails(head, rel, time), at], dim=1)

        def resemble(at: Tensor) -> Tensor:
            like = torch.randint(num_train, at.shape, generator=generator)
            head, rel = train[like, 0], train[like, 1]
            return torch.stack([head, rel, tails(head, rel, start[like]), like], dim=1)

        def tails(head: Tensor, rel: Tensor, time: Tensor) -> Tensor:
            cluster = (head + shift[rel, time * self._phases // self._steps]) % self._clusters
            members = (known[time] - cluster - 1) // self._clusters + 1
            return cluster + self._clusters * _below(members, generator)

        train = self._distinct(begin, num_train)
        num_val, num_test = round(num_train * self._val), round(num_train * self._test)
        val, test = self._distinct(resemble, num_val + num_test, train).split([num_val, num_test])
        ids = torch.randperm(self._entities, generator=generator)  # ids do not follow the order of appearance
        splits = {}
        for split, facts in (("train", train), ("val", val), ("test", test)):
            head, rel, tail, like = facts.unbind(1)
            splits[split] = torch.stack([ids[head], rel, ids[tail], start[like], end[like]], dim=1)
        return Graph(
            splits,
            [f"entity {index}" for index in range(self._entities)],
            [f"relation {index}" for index in range(self._relations)],
            TimeAxis.from_instants(range(self._steps), "index"),
        )

    def _intervals(self) -> tuple[Tensor, Tensor]:
        """First and last step of every train fact, in the order in which they begin and end."""
        later = torch.arange(1, self._steps).repeat_interleave(self._added)
        start = torch.cat([torch.zeros(self._facts, dtype=torch.long), later])
        if self._deleted == 0:
            return start, torch.full_like(start, self._steps - 1)
        return start, (torch.arange(len(start)) // self._deleted).clamp(max=self._steps - 1)

    def _shifts(self, generator: torch.Generator) -> Tensor:
        """``[num_relations, num_phases]`` how many clusters further a relation leads."""
        shape = (self._relations, self._phases)
        shift = torch.randint(1, max(2, self._clusters), shape, generator=generator)
        shift[::2] = shift[::2, :1]
        return shift

    def _distinct(self, draw: Callable[[Tensor], Tensor], count: int, taken: Tensor | None = None) -> Tensor:
        """``count`` facts, each from ``draw``, of which no two have the same triple, nor one of ``taken``."""
        facts = draw(torch.arange(count))
        before = facts[:0] if taken is None else taken
        sizes = [self._entities, self._relations, self._entities]
        for _ in range(_ROUNDS):
            head, rel, tail, _ = torch.cat([before, facts]).unbind(1)
            keys, order = pack([head, rel, tail], sizes).sort(stable=True)
            # The first of equal facts stays; `taken` comes first.
            again = order[1:][keys[1:] == keys[:-1]] - len(before)
            if len(again) == 0:
                return facts
            facts[again] = draw(again)
        raise ValueError(
            f"facts_per_step and added_per_step must leave room for different facts (got {self._facts} and "
            f"{self._added} with {self._entities} entities in {self._clusters} clusters)"
        )


def _at_least(least: int, **arguments: float) -> None:
    for name, value in arguments.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least} (got {value})")


def _below(bounds: Tensor, generator: torch.Generator) -> Tensor:
    """One number below each bound."""
    return (torch.rand(bounds.shape, generator=generator, dtype=torch.float64) * bounds).long()
