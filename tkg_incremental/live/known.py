"""The fact store as the source of known facts and types for answers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.answers.facts import Interval, mean_overlap
from tkg_incremental.answers.further import further_answers
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.facts import facts_at, read_array
from tkg_incremental.live.records import Fact
from tkg_incremental.live.store import FactStore
from tkg_incremental.ops.answers import Side

# Facts of a relation that its usual number of answers is estimated from.
_SAMPLE = 5_000
# Stretches of ids that a sample of a type is taken from.
_STRETCHES = 50


class StoreFacts:
    """Known facts by index look-ups in the store: nothing is read before it is asked for.

    Args:
        store: The fact store.
        clock: The time axis.
        revision: The facts as they were recorded at a revision of the store; by default the present ones.
    """

    def __init__(self, store: FactStore, clock: GraphClock, revision: int | None = None) -> None:
        self._store, self._clock, self._revision = store, clock, revision
        self._members: dict[tuple[int, Side], Tensor] = {}
        # The usual number of answers, and the expected number of further ones.
        self._numbers: dict[tuple[int, Side], tuple[float, Tensor]] = {}
        self._closed: dict[int, bool] = {}

    def _select(self, sql: str, *values: int, width: int = 1) -> Tensor:
        return torch.from_numpy(read_array(self._store.connection.execute(sql, values), width))

    def _interval(self, fact: Fact) -> Interval:
        end, clock = fact.valid_to, self._clock
        # A fact may begin after the last step.
        first = max(fact.valid_from, clock.origin) - clock.origin
        return Interval(first, None if end is None or end > clock.now + 1 else clock.step(end - 1))

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        return [self._interval(fact) for fact in self._store.intervals(head, rel, tail, self._revision)]

    def answers(self, given: int, rel: int, side: Side, step: int | None = None) -> dict[int, list[Interval]]:
        """As :meth:`KnownFacts.answers`, or of a single step alone, which reads no other facts."""
        head, tail = (None, given) if side == "head" else (given, None)
        at, found = None if step is None else self._clock.origin + step, dict[int, list[Interval]]()
        for fact in self._store.answers(head, rel, tail, at, self._revision):
            found.setdefault(fact.head if side == "head" else fact.tail, []).append(self._interval(fact))
        return found

    def is_closed(self, rel: int) -> bool:
        if rel not in self._closed:
            spans = self._spans(rel, "head")
            self._closed[rel] = bool((spans[:, 2] > spans[:, 1]).any())
        return self._closed[rel]

    def type_members(self, rel: int, side: Side) -> Tensor:
        if (rel, side) not in self._members:
            if self._revision is None:
                sql = f"SELECT entity FROM members WHERE rel = ? AND side = {int(side == 'tail')} ORDER BY entity"
            else:  # reads all facts
                source = facts_at(self._revision)
                sql = f"SELECT DISTINCT {side} FROM {source} WHERE rel = ? ORDER BY {side}"
            self._members[rel, side] = self._select(sql, rel).flatten()
        return self._members[rel, side]

    def some_members(self, rel: int, side: Side, size: int) -> Tensor:
        """At most ``size`` of the present type members, in order: stretches of neighbouring ids at random places. They
        are the same at each call, as far as the type has not changed between."""
        kind = (rel, int(side == "tail"))
        sql = "SELECT entity FROM members WHERE rel = ? AND side = ? AND entity >= ? ORDER BY entity LIMIT ?"
        first = self._select(sql, *kind, 0, size + 1).flatten()
        if len(first) <= size:
            return first
        # Places in a power of two, so that they stay where they are while ids are added; up to half of them are empty.
        last = int(self._select("SELECT max(entity) FROM members WHERE rel = ? AND side = ?", *kind))
        drawn = np.random.default_rng(kind).integers(0, 1 << last.bit_length(), 4 * _STRETCHES)
        places, length = drawn[drawn <= last][:_STRETCHES].tolist(), -(-size // _STRETCHES)
        return torch.unique(torch.cat([self._select(sql, *kind, at, length) for at in places]))[:size]

    def answers_per_query(self, rel: int, side: Side) -> float:
        return self._numbers_of_answers(rel, side)[0]

    def further_answers(self, rel: int, side: Side) -> Tensor:
        return self._numbers_of_answers(rel, side)[1]

    def _numbers_of_answers(self, rel: int, side: Side) -> tuple[float, Tensor]:
        if (rel, side) not in self._numbers:
            spans = self._spans(rel, "tail" if side == "head" else "head")
            clock, steps = self._clock, spans.clone()
            steps[:, 1:] = steps[:, 1:].clamp(clock.origin, clock.now) - clock.origin
            steps = steps[spans[:, 1] <= clock.now]  # a fact may begin after the last step
            self._numbers[rel, side] = mean_overlap(spans), further_answers(steps, clock.num_steps)
        return self._numbers[rel, side]

    def _spans(self, rel: int, side: Side) -> Tensor:
        """``[n, 3]`` entity on ``side``, first and last instant of some facts of a relation."""
        columns = f"{side}, valid_from, coalesce(valid_to, {self._clock.now + 1}) - 1"
        if self._revision is None:
            # By entities of the relation: there is no index of facts by relation alone.
            source = f"members m CROSS JOIN facts f ON f.{side} = m.entity AND f.rel = m.rel"
            where = f"m.rel = ? AND m.side = {int(side == 'tail')}"
        else:
            source, where = facts_at(self._revision), "rel = ?"
        return self._select(f"SELECT {columns} FROM {source} WHERE {where} LIMIT {_SAMPLE}", rel, width=3)

    def relations_of_type(self, head: int, tail: int) -> list[int]:
        heads = {fact.rel for fact in self._store.neighbours(head, self._revision) if fact.head == head}
        tails = {fact.rel for fact in self._store.neighbours(tail, self._revision) if fact.tail == tail}
        return sorted(heads & tails)
