"""The views of a timeline, and the way from intervals to steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

Row = tuple[int, int, int, int]
Fact = tuple[int, int, int, int, int]
Triple = tuple[int, int, int]


def rows_of(tensor: Tensor) -> list[Row]:
    """The rows of a tensor as tuples, sorted, repetitions kept."""
    return sorted(tuple(row) for row in tensor.tolist())


# Views of a timeline -----------------------------------------------------------------------------------


@dataclass
class TimelineOracle:
    """The views of a timeline, straight from their definitions."""

    train: list[Row]
    val: list[Row]
    test: list[Row]
    num_entities: int
    num_steps: int

    @property
    def all(self) -> list[Row]:
        return [*self.train, *self.val, *self.test]

    def holding(self, step: int) -> set[Triple]:
        """Train triples that hold at a step."""
        return {(head, rel, tail) for head, rel, tail, time in self.train if time == step}

    def added(self, step: int) -> list[Row]:
        return _at(step, self.holding(step) - self.holding(step - 1))

    def removed(self, step: int) -> list[Row]:
        return _at(step - 1, self.holding(step - 1) - self.holding(step))

    def deleted(self, step: int, window: int) -> list[Row]:
        held = {triple for before in range(step - window, step) for triple in self.holding(before)}
        return _at(step, held - self.holding(step))

    def replay(self, step: int, window: int) -> list[Row]:
        return sorted({row for row in self.train if step - window <= row[3] < step})

    def boundary_facts(self, step: int, window: int) -> list[Row]:
        def held(triple: Triple, when: int) -> bool:
            return when < step and triple in self.holding(when)

        past = ((row[:3], row[3]) for row in self.replay(step, window))
        return sorted((*fact, when) for fact, when in past if not (held(fact, when - 1) and held(fact, when + 1)))

    def first_seen(self, entity: int) -> int:
        steps = [time for head, _, tail, time in self.all if entity in (head, tail)]
        return min(steps, default=self.num_steps)

    def known_entities(self, step: int) -> set[int]:
        return {entity for head, _, tail, time in self.all if time <= step for entity in (head, tail)}

    def answers(self, side: str, which: str, row: Row) -> set[int]:
        """Entities that answer the query of a row: (head, rel, ?, time) or (?, rel, tail, time)."""
        rows = self.train if which == "train" else self.all
        head, rel, tail, time = row
        if side == "tail":
            return {o for s, r, o, t in rows if (s, r, t) == (head, rel, time)}
        return {s for s, r, o, t in rows if (r, o, t) == (rel, tail, time)}


def _at(step: int, triples: Iterable[Triple]) -> list[Row]:
    return sorted((*triple, step) for triple in triples)


# From intervals to steps -------------------------------------------------------------------------------


def count_bins(years: list[int], threshold: int) -> list[int]:
    """The last year of every step."""
    ends, count = [], 0
    for year in sorted(set(years)):
        count += years.count(year)
        if count > threshold:
            ends.append(year)
            count = 0
    if not ends or ends[-1] != max(years):
        ends.append(max(years))
    return ends


def expand(facts: list[Fact]) -> list[Row]:
    """Rows of facts (head, rel, tail, first, last)."""
    return sorted((head, rel, tail, step) for head, rel, tail, start, end in facts for step in range(start, end + 1))
