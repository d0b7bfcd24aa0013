"""A temporal knowledge graph: its facts in three splits, the known entities of each step, and true answers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.data.facts import FactTable
from tkg_incremental.data.intervals import one_step_facts
from tkg_incremental.ops.answers import FIRST, HEAD, LAST, TAIL, AnswerIndex, Side

SPLITS = ("train", "val", "test")


class Timeline:
    """The facts of a temporal knowledge graph on one device.

    Args:
        splits: ``{"train": facts, "val": facts, "test": facts}``, each a LongTensor ``[F, 5]`` of head, rel, tail,
            first step and last step, both included.
        num_entities: Number of entities.
        num_relations: Number of relations.
        axis: What each step stands for.
    """

    def __init__(self, splits: Mapping[str, Tensor], num_entities: int, num_relations: int, axis: TimeAxis) -> None:
        self.num_entities, self.num_relations, self.axis = num_entities, num_relations, axis
        for name in SPLITS:
            self._check(name, splits[name])
        #: Facts of each split as published, repeated ones kept.
        self.train, self.val, self.test = (FactTable(splits[name], *self._sizes) for name in SPLITS)

    @classmethod
    def from_quads(
        cls, splits: Mapping[str, Tensor], num_entities: int, num_relations: int, axis: TimeAxis
    ) -> Timeline:
        """A timeline from quads.

        Args:
            splits: ``{"train": quads, "val": quads, "test": quads}``, each a LongTensor ``[N, 4]`` of head, rel, tail,
                time. Repeated quads stay repeated.
            num_entities: Number of entities.
            num_relations: Number of relations.
            axis: What each step stands for.
        """
        for name in SPLITS:
            _check_shape(f"{name} quads", splits[name], "N", 4)
        return cls({name: one_step_facts(splits[name]) for name in SPLITS}, num_entities, num_relations, axis)

    @property
    def num_steps(self) -> int:
        return self.axis.num_steps

    @property
    def labels(self) -> Sequence[str]:
        return self.axis.labels

    @property
    def base_step(self) -> int:
        """The last step of the base model and the first step of incremental learning: 70% of all steps."""
        return self.num_steps * 7 // 10

    @property
    def device(self) -> torch.device:
        return self.train.device

    @cached_property
    def is_events(self) -> bool:
        """Whether all facts are point events, i.e. last one step."""
        return all(self.split(name).max_duration <= 1 for name in SPLITS)

    def to(self, device: torch.device | str) -> Timeline:
        """The same timeline on another device (itself if it is there already)."""
        if torch.device(device) == self.device:
            return self
        splits = {name: self.split(name).facts.to(device) for name in SPLITS}
        return Timeline(splits, self.num_entities, self.num_relations, self.axis)

    def split(self, name: str) -> FactTable:
        """The facts of ``"train"``, ``"val"`` or ``"test"``."""
        if name not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS} (got {name!r})")
        return getattr(self, name)

    @property
    def observed(self) -> FactTable:
        """Train facts, merged: the facts that models learn from."""
        return self.train.merged()

    @cached_property
    def truth(self) -> FactTable:
        """Facts of all splits, merged."""
        return FactTable(torch.cat([self.split(name).facts for name in SPLITS]), *self._sizes).merged()

    # Known entities ---------------------------------------------------------------------------------------------

    @cached_property
    def first_seen(self) -> Tensor:
        """``[num_entities]`` first step with a fact of the entity in any split, or ``num_steps``."""
        return self._first_step(SPLITS)

    @cached_property
    def first_observed(self) -> Tensor:
        """``[num_entities]`` first step with a train fact of the entity, or ``num_steps``."""
        return self._first_step(("train",))

    def _first_step(self, splits: Sequence[str]) -> Tensor:
        first = torch.full((self.num_entities,), self.num_steps, device=self.device)
        for name in splits:
            facts = self.split(name).facts
            for column in (HEAD, TAIL):
                first.scatter_reduce_(0, facts[:, column], facts[:, FIRST], "amin")
        return first

    @cached_property
    def order(self) -> Tensor:
        """``[num_entities]`` entities by first step: those known at ``t`` are ``order[:num_known[t]]``."""
        return torch.argsort(self.first_seen, stable=True)

    @cached_property
    def column_of(self) -> Tensor:
        """``[num_entities]`` the position of each entity in :attr:`order`."""
        return torch.empty_like(self.order).scatter_(0, self.order, torch.arange(self.num_entities, device=self.device))

    @cached_property
    def num_known(self) -> Tensor:
        """``[num_steps]`` number of entities known at each step."""
        steps = torch.arange(self.num_steps, device=self.device)
        return torch.searchsorted(self.first_seen[self.order], steps, right=True)

    def known_entities(self, step: int) -> Tensor:
        """The entities with a fact of any split at a step ≤ ``step``, by first step."""
        return self.order[: int(self.num_known[step])]

    def with_known_until(self, step: int) -> Timeline:
        """A copy in which the entities known at ``step`` also count as known at earlier steps."""
        twin = copy.copy(self)
        twin.num_known = self.num_known.clamp(min=int(self.num_known[step]))
        return twin

    # True answers -----------------------------------------------------------------------------------------------

    def answers(self, side: Side, which: Literal["train", "all"] = "all") -> AnswerIndex:
        """The true answers of all queries.

        Args:
            side: The side that is asked for.
            which: ``"train"``: among train facts (for negative sampling); ``"all"``: among the facts of all splits
                (for filtered ranks).
        """
        if which not in ("train", "all"):
            raise ValueError(f"which must be 'train' or 'all' (got {which!r})")
        if (side, which) not in self._answers:
            table = self.observed if which == "train" else self.truth
            self._answers[side, which] = AnswerIndex(table.facts, side, self.num_entities, self.num_relations)
        return self._answers[side, which]

    @cached_property
    def _answers(self) -> dict[tuple[Side, str], AnswerIndex]:
        return {}

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.num_entities, self.num_relations, self.num_steps

    def _check(self, name: str, facts: Tensor) -> None:
        _check_shape(f"{name} facts", facts, "F", 5)
        limits = (self.num_entities, self.num_relations, self.num_entities, self.num_steps, self.num_steps)
        _check_range(f"{name} facts", facts, ("head", "rel", "tail", "first step", "last step"), limits)
        reversed_ = facts[facts[:, FIRST] > facts[:, LAST]]
        if len(reversed_):
            raise ValueError(f"{name} facts must not end before they begin (got {reversed_[0].tolist()})")

    def __repr__(self) -> str:
        tables = [self.split(name) for name in SPLITS]
        rows, facts = (" / ".join(map(str, sizes)) for sizes in ((t.num_rows for t in tables), map(len, tables)))
        return (
            f"Timeline({self.num_entities} entities, {self.num_relations} relations, {self.num_steps} steps, "
            f"{rows} rows, {facts} facts)"
        )


def _check_shape(what: str, table: Tensor, size: str, columns: int) -> None:
    if table.dim() != 2 or table.size(1) != columns or table.dtype != torch.long:
        raise ValueError(f"{what} must be a LongTensor [{size}, {columns}] (got {table.dtype} {list(table.shape)})")


def _check_range(what: str, table: Tensor, columns: Sequence[str], limits: Sequence[int]) -> None:
    if len(table) == 0:
        return
    lowest, highest = (bound.tolist() for bound in torch.aminmax(table, dim=0))
    for column, low, high, limit in zip(columns, lowest, highest, limits, strict=True):
        if low < 0 or high >= limit:
            raise ValueError(f"{column} of {what} must lie in 0 … {limit - 1} (got {low} … {high})")
