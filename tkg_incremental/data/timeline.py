"""A whole temporal knowledge graph: its rows in three splits and who is known when."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data.axis import TimeAxis
from tkg_incremental.data.facts import FactTable
from tkg_incremental.ops.answers import AnswerIndex, Side

SPLITS = ("train", "val", "test")


class Timeline:
    """The rows of a temporal knowledge graph, step by step, on one device.

    Args:
        splits: ``{"train": rows, "val": rows, "test": rows}``, each ``[N, 4]`` head, rel, tail, time.
        num_entities: Number of entities.
        num_relations: Number of relations.
        axis: What each step stands for.
    """

    def __init__(self, splits: Mapping[str, Tensor], num_entities: int, num_relations: int, axis: TimeAxis) -> None:
        self.num_entities, self.num_relations, self.axis = num_entities, num_relations, axis
        for name in SPLITS:
            self._check(name, splits[name])
        shape = (num_entities, num_relations, axis.num_steps)
        self.train = FactTable(splits["train"], *shape)
        self.val = FactTable(splits["val"], *shape)
        self.test = FactTable(splits["test"], *shape)

    @property
    def num_steps(self) -> int:
        return self.axis.num_steps

    @property
    def labels(self) -> list[str]:
        return self.axis.labels

    @property
    def base_step(self) -> int:
        """The last step of the base model, and the first that incremental learning visits: 70% of all."""
        return self.num_steps * 7 // 10

    @property
    def device(self) -> torch.device:
        return self.train.rows.device

    def to(self, device: torch.device | str) -> Timeline:
        """The same timeline on another device (itself if it is there already)."""
        if torch.device(device) == self.device:
            return self
        return Timeline(
            {name: self.split(name).rows.to(device) for name in SPLITS},
            self.num_entities,
            self.num_relations,
            self.axis,
        )

    def split(self, name: str) -> FactTable:
        if name not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS} (got {name!r})")
        return getattr(self, name)

    @cached_property
    def observed(self) -> FactTable:
        """Train rows, each once: what the views are cut from and what models learn from."""
        return self.train.unique()

    # Who is known when ---------------------------------------------------------------------------------

    @cached_property
    def first_seen(self) -> Tensor:
        """``[num_entities]`` first step with a row of the entity in any split, or ``num_steps``."""
        return self._first_step(SPLITS)

    @cached_property
    def first_observed(self) -> Tensor:
        """``[num_entities]`` first step with a train row of the entity, or ``num_steps``."""
        return self._first_step(("train",))

    def _first_step(self, splits: Sequence[str]) -> Tensor:
        first = torch.full((self.num_entities,), self.num_steps, device=self.device)
        for name in splits:
            rows = self.split(name).rows
            for column in (0, 2):
                first.scatter_reduce_(0, rows[:, column], rows[:, 3], "amin")
        return first

    @cached_property
    def order(self) -> Tensor:
        """``[num_entities]`` by first appearance: those known at ``t`` are ``order[:num_known[t]]``."""
        return torch.argsort(self.first_seen, stable=True)

    @cached_property
    def column_of(self) -> Tensor:
        """``[num_entities]`` the place of each entity in :attr:`order`."""
        return torch.empty_like(self.order).scatter_(0, self.order, torch.arange(self.num_entities, device=self.device))

    @cached_property
    def num_known(self) -> Tensor:
        """``[num_steps]`` how many entities are known at each step."""
        steps = torch.arange(self.num_steps, device=self.device)
        return torch.searchsorted(self.first_seen[self.order], steps, right=True)

    def known_entities(self, step: int) -> Tensor:
        """Every entity with a row of any split at a step ≤ ``step``."""
        return self.order[: int(self.num_known[step])]

    def knowing(self, step: int) -> Timeline:
        """The same timeline to one who knows at every earlier step, too, whoever is known at ``step``."""
        twin = copy.copy(self)
        twin.num_known = self.num_known.clamp(min=int(self.num_known[step]))
        return twin

    # True answers --------------------------------------------------------------------------------------

    def answers(self, side: Side, which: Literal["train", "all"] = "all") -> AnswerIndex:
        """True answers of every query among train rows (for negatives) or all rows (for filtered ranks)."""
        return self._answers[which, side]

    @cached_property
    def _answers(self) -> _AnswerIndices:
        return _AnswerIndices(self)

    def _check(self, name: str, rows: Tensor) -> None:
        if rows.dim() != 2 or rows.size(1) != 4 or rows.dtype != torch.long:
            raise ValueError(f"{name} rows must be a LongTensor [N, 4] (got {rows.dtype} {list(rows.shape)})")
        if len(rows) == 0:
            return
        columns = ("head", "rel", "tail", "time")
        limits = (self.num_entities, self.num_relations, self.num_entities, self.num_steps)
        lowest, highest = (bound.tolist() for bound in torch.aminmax(rows, dim=0))
        for what, low, high, limit in zip(columns, lowest, highest, limits, strict=True):
            if low < 0 or high >= limit:
                raise ValueError(f"{what} of {name} rows must lie in 0 … {limit - 1} (got {low} … {high})")

    def __repr__(self) -> str:
        return (
            f"Timeline({self.num_entities} entities, {self.num_relations} relations, {self.num_steps} steps, "
            f"{len(self.train)} / {len(self.val)} / {len(self.test)} rows)"
        )


class _AnswerIndices(dict[tuple[str, Side], AnswerIndex]):
    """Answer indices made when first asked for."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._timeline = timeline

    def __missing__(self, key: tuple[str, Side]) -> AnswerIndex:
        which, side = key
        line = self._timeline
        names = {"train": ("train",), "all": SPLITS}[which]
        rows = torch.cat([line.split(name).rows for name in names])
        self[key] = AnswerIndex(rows, side, line.column_of, line.num_relations, line.num_steps)
        return self[key]
