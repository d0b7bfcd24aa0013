"""A generated company: its facts, five days of changes, and what is true, in plain Python."""

from __future__ import annotations

import csv
import datetime
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

Triple = tuple[str, str, str]

FIRST = datetime.date(2026, 1, 1)
TODAY = 120  # the last day of the first export
DEPARTMENTS = ["R&D", "Sales", "Legal", 'The "A" Team', "Ops, EU", "日本支社", "Finance"]


def day(number: int) -> str:
    return (FIRST + datetime.timedelta(days=number)).isoformat()


def person(number: int) -> str:
    kinds = ("Person {}", 'Dr. "Doc" No {}', "Müller, Zoë {}", "O'Brien {}", "Łukasz {}", "Иван {}")
    return kinds[number % len(kinds)].format(number)


@dataclass
class Company:
    """Facts with their days, and the changes of each day.

    Args:
        seed: Seed of everything random.
        people: Number of people.
    """

    seed: int = 0
    people: int = 60
    facts: dict[Triple, list[tuple[int, int | None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.staff = [person(number) for number in range(self.people)]
        for i, name in enumerate(self.staff):
            self.begin((name, "works in", self.random.choice(DEPARTMENTS)), self.random.randrange(60))
            self.begin((name, "lives in", f"City {i % 9}"), self.random.randrange(60))
            if i % 2 == 0:
                self.begin((name, "works on", f"Project {i % 14}"), self.random.randrange(100))
        for department in DEPARTMENTS:
            middle = self.random.randrange(40, 80)
            before, now = self.random.sample(self.staff, 2)
            self.facts[before, "leads", department] = [(0, middle)]
            self.begin((now, "leads", department), middle)
        self.begin((self.staff[0], "reports to", self.staff[1]), TODAY)

    def begin(self, fact: Triple, at: int) -> None:
        self.facts.setdefault(fact, []).append((at, None))

    def end(self, fact: Triple, at: int) -> None:
        start, _ = self.facts[fact].pop()
        self.facts[fact].append((start, at))

    def holding(self, at: int) -> set[Triple]:
        """The facts that hold on a day."""
        return {
            fact
            for fact, spans in self.facts.items()
            if any(start <= at and (end is None or at < end) for start, end in spans)
        }

    def tail_of(self, head: str, rel: str, at: int) -> str:
        (tail,) = [t for h, r, t in self.holding(at) if (h, r) == (head, rel)]
        return tail

    def leader(self, department: str, at: int) -> str:
        (head,) = [h for h, r, t in self.holding(at) if (r, t) == ("leads", department)]
        return head

    def export(self, path: Path) -> None:
        rows = [
            [*fact, day(start), "" if end is None else day(end - 1)]
            for fact, spans in self.facts.items()
            for start, end in spans
        ]
        write(path, ["head", "rel", "tail", "start", "end"], rows)

    def changes_of(self, number: int) -> list[tuple[str, Triple, int]]:
        """The changes of a day of the week, from 1. They are applied to the facts."""
        at = TODAY + number
        changes: list[tuple[str, Triple, int]] = []
        for i in range(2):  # new entities
            new = f"New, Person {number}.{i} “Ünal”"
            changes += [("add", (new, "works in", self.random.choice(DEPARTMENTS)), at)]
            changes += [("add", (new, "lives in", f"City {self.random.randrange(9)}"), at)]
        department = DEPARTMENTS[number]
        old = self.leader(department, at)
        changes += [("end", (old, "leads", department), at)]
        new = self.random.choice([name for name in self.staff if (name, "leads", department) not in self.facts])
        changes += [("add", (new, "leads", department), at)]
        for name in self.staff[3 * number : 3 * number + 2]:  # they move
            old = self.tail_of(name, "lives in", at)
            changes += [("end", (name, "lives in", old), at)]
            other = self.random.choice([c for c in range(9) if f"City {c}" != old])
            changes += [("add", (name, "lives in", f"City {other}"), at)]
        if number == 3:
            wrong = next(f for f in self.facts if f[1] == "works on")
            changes += [("retract", wrong, at)]
        if number == 4:  # late
            changes += [("add", (self.staff[1], "works on", "Project 3"), at - 30)]
        if number == 5:  # a new relation
            changes += [("add", (self.staff[i], "mentors", self.staff[i + 20]), at) for i in range(6)]
        for op, fact, when in changes:
            if op == "add":
                self.begin(fact, when)
            elif op == "end":
                self.end(fact, when)
            else:
                del self.facts[fact]
        return changes


def write(path: Path, header: list[str], rows: Iterable[Iterable[str]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)
    return path


def write_changes(path: Path, changes: Iterable[tuple[str, Triple, int]]) -> Path:
    return write(path, ["op", "head", "rel", "tail", "at"], [[op, *fact, day(at)] for op, fact, at in changes])
