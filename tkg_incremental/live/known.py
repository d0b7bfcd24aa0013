"""The fact store as the source of known facts and types for answers."""

from __future__ import annotations

import torch
from torch import Tensor

from tkg_incremental.answers.facts import Interval, mean_overlap
from tkg_incremental.data.nearest import NameSearch
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.records import Fact
from tkg_incremental.live.store import FactStore
from tkg_incremental.ops.answers import Side

# Facts of a relation that its usual number of answers is estimated from.
_SAMPLE = 5_000


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
        self._per_query: dict[tuple[int, Side], float] = {}
        self._closed: dict[int, bool] = {}

    def _interval(self, valid_from: int, valid_to: int | None) -> Interval:
        last = None if valid_to is None or valid_to > self._clock.now else self._clock.step(valid_to - 1)
        # A fact may begin after the last step.
        return Interval(max(valid_from, self._clock.origin) - self._clock.origin, last)

    def intervals(self, head: int, rel: int, tail: int) -> list[Interval]:
        return [self._interval(*interval) for interval in self._store.intervals(head, rel, tail, self._revision)]

    def known_answers(self, given: int, rel: int, side: Side, step: int) -> dict[int, Interval]:
        head, tail = (None, given) if side == "head" else (given, None)
        facts = self._store.answers(head, rel, tail, self._clock.origin + step, self._revision)
        return {_end(fact, side): self._interval(fact.valid_from, fact.valid_to) for fact in facts}

    def answers(self, given: int, rel: int, side: Side) -> dict[int, list[Interval]]:
        head, tail = (None, given) if side == "head" else (given, None)
        found: dict[int, list[Interval]] = {}
        for fact in self._store.answers(head, rel, tail, revision=self._revision):
            found.setdefault(_end(fact, side), []).append(self._interval(fact.valid_from, fact.valid_to))
        return found

    def is_closed(self, rel: int) -> bool:
        if rel not in self._closed:
            spans = self._spans(rel, "head")
            self._closed[rel] = bool((spans[:, 2] > spans[:, 1]).any())
        return self._closed[rel]

    def type_members(self, rel: int, side: Side) -> Tensor:
        if (rel, side) not in self._members:
            members = torch.from_numpy(self._store.type_members(rel, side, self._revision))
            self._members[rel, side] = members.sort().values
        return self._members[rel, side]

    def answers_per_query(self, rel: int, side: Side) -> float:
        if (rel, side) not in self._per_query:
            self._per_query[rel, side] = mean_overlap(self._spans(rel, "tail" if side == "head" else "head"))
        return self._per_query[rel, side]

    def _spans(self, rel: int, side: Side) -> Tensor:
        """``[n, 3]`` entity on ``side``, first and last instant of some facts of a relation."""
        found = self._store.spans(rel, side, self._clock.now + 1, _SAMPLE, self._revision)
        rows = torch.tensor(found, dtype=torch.long).view(-1, 3)
        rows[:, 2] -= 1
        return rows

    def relations_of_type(self, head: int, tail: int) -> list[int]:
        heads = {fact.rel for fact in self._store.neighbours(head, self._revision) if fact.head == head}
        tails = {fact.rel for fact in self._store.neighbours(tail, self._revision) if fact.tail == tail}
        return sorted(heads & tails)


def _end(fact: Fact, side: Side) -> int:
    return fact.head if side == "head" else fact.tail


class StoreNames:
    """Names of the store by id, looked up one at a time.

    Args:
        store: The fact store.
        kind: ``"entity"`` or ``"relation"``.
        size: Number of ids that the model has rows for. Names with later ids count as unknown.
    """

    def __init__(self, store: FactStore, kind: str, size: int | None = None) -> None:
        self._store, self._kind = store, kind
        self._size = 2**62 if size is None else size
        self._id = store.entity_id if kind == "entity" else store.relation_id
        self._names = store.entity_names if kind == "entity" else store.relation_names

    def index(self, name: str | int) -> int:
        if isinstance(name, int):
            return name
        found = self._id(name)
        return found if found is not None and found < self._size else self._ignoring_case(name)

    def _ignoring_case(self, name: str) -> int:
        table = "entities" if self._kind == "entity" else "relations"
        run = self._store.connection.execute
        sql = (
            f"SELECT id FROM {table} WHERE name = ? COLLATE NOCASE AND id < ? UNION "
            "SELECT id FROM aliases WHERE alias = ? COLLATE NOCASE AND id < ? AND kind = ? LIMIT 2"
        )
        same = run(sql, (name, self._size, name, self._size, self._kind)).fetchall()
        if len(same) == 1:
            return int(same[0][0])
        pattern = "%" + name.replace("%", "").replace("_", "") + "%"
        near = run(
            f"SELECT name FROM {table} WHERE name LIKE ? AND id < ? ORDER BY length(name) LIMIT 3",
            (pattern, self._size),
        ).fetchall()
        if not near:  # no name contains it: a typo
            names = run(f"SELECT name FROM {table} WHERE name IS NOT NULL AND id < ?", (self._size,)).fetchall()
            near = [names[place] for place in NameSearch([row[0] for row in names]).nearest(name, 3)]
        hint = f"; the nearest are {', '.join(repr(row[0]) for row in near)}" if near else ""
        raise KeyError(f"no {self._kind} is called {name!r}{hint}")

    def __getitem__(self, index: int) -> str:
        return self._names([index])[0] or f"(erased {self._kind} {index})"
