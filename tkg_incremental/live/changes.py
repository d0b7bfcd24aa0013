"""Sets of changes: what is added, ended and retracted, and whether it fits the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tkg_incremental.live.change_files import ChangeFileError, Rejection, parse_record, read_records
from tkg_incremental.live.records import OPEN, OPS, Change
from tkg_incremental.live.revisions import apply_change
from tkg_incremental.live.store import FactStore

__all__ = ["Change", "ChangeFileError", "ChangeSet", "Rejection", "Validation"]


@dataclass(frozen=True)
class Validation:
    """How a set of changes fits a store.

    Args:
        accepted: Changes that can be applied, retractions first, then in the order of their time.
        rejected: Lines that cannot, with reasons.
        late: Accepted changes with a time before the last step of the graph.
        notes: Remarks, such as repeated lines.
    """

    accepted: list[Change]
    rejected: list[Rejection] = field(default_factory=list)
    late: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class ChangeSet:
    """Changes that belong to one update.

    Args:
        changes: The changes.
        rejected: Lines that could not be parsed.
    """

    def __init__(self, changes: Iterable[Change] = (), rejected: Iterable[Rejection] = ()) -> None:
        self.changes, self.rejected = list(changes), list(rejected)
        for change in self.changes:
            if change.op not in OPS:
                raise ValueError(f"op must be one of {', '.join(OPS)} (got {change.op!r})")
            if change.at is None and change.op != "retract":
                raise ValueError(f"a change of kind {change.op!r} needs a time (got {change})")

    def __repr__(self) -> str:
        counts = {op: sum(change.op == op for change in self.changes) for op in OPS}
        return f"{type(self).__name__}({counts['add']} added, {counts['end']} ended, {counts['retract']} retracted)"

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @classmethod
    def read(cls, source: Any, parse: Callable[[str], int], at: int | None = None) -> ChangeSet:
        """Reads changes.

        Args:
            source: The path of a CSV, TSV, JSON lines or Parquet file, a data frame, or a sequence of mappings or
                tuples, with an ``op``: ``add``, ``end``, ``retract``, or ``+`` and ``-`` for the first two.
            parse: Makes an instant of a text.
            at: The instant of additions and ends without one.

        Raises:
            ChangeFileError: If the source cannot be read at all. Single bad lines are among ``rejected``.
        """
        changes, rejected = [], []
        for line, record in read_records(source):
            found = parse_record(record, line, parse, at)
            if isinstance(found, Change):
                changes.append(found)
            else:
                rejected.append(found)
        return cls(changes, rejected)

    @classmethod
    def from_full_export(
        cls,
        store: FactStore,
        facts: Iterable[tuple[str, str, str, int, int | None]],
        at: int,
        missing: str = "end",
    ) -> ChangeSet:
        """The differences between a new full export and the store.

        Args:
            store: The store, in its present state.
            facts: Head, relation, tail, first instant and first instant at which the fact no longer holds, or
                ``None``.
            at: When facts that the export lacks have ended.
            missing: ``"end"``: facts that the export lacks end at ``at`` if they hold there; those of the past stay,
                since an export of the present does not list them. ``"retract"``: they are retracted.
        """
        if missing not in ("end", "retract"):
            raise ValueError(f"missing must be 'end' or 'retract' (got {missing!r})")
        new: dict[tuple[str, str, str, int], int | None] = {}
        starts: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for head, rel, tail, start, until in facts:
            new[head, rel, tail, start] = until
            starts.setdefault((head, rel, tail), []).append((start, OPEN if until is None else until))
        changes = []
        for fact in _named_facts(store):
            start, until = fact[3:]
            triple, key = fact[:3], fact[:4]
            if key in new:
                wanted = new.pop(key)
                if wanted == until:
                    continue
                if wanted is not None and (until is None or wanted < until):
                    changes.append(Change("end", *triple, wanted))
                else:
                    changes += [Change("retract", *triple, start), Change("add", *triple, start, wanted)]
            elif missing == "retract" or any(
                low < (OPEN if until is None else until) and start < high for low, high in starts.get(triple, ())
            ):  # the export has it with another beginning
                changes.append(Change("retract", *triple, start))
            elif start < at < (OPEN if until is None else until):
                changes.append(Change("end", *triple, at))
        changes += [Change("add", head, rel, tail, start, until) for (head, rel, tail, start), until in new.items()]
        return cls(changes)

    @property
    def content_hash(self) -> str:
        """Identifies the content, whatever the format of the file and the order of its lines."""
        rows = sorted({json.dumps([c.op, c.head, c.rel, c.tail, c.at, c.until]) for c in self.changes})
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def validate(self, store: FactStore, show: Callable[[int], str] = str) -> Validation:
        """Applies the changes on top of the pending ones and undoes it: retractions, then the others by time.

        Args:
            store: The store.
            show: Formats instants for the reasons.
        """
        result = Validation([], list(self.rejected))
        seen: dict[Change, int] = {}
        clock = store.clock
        with store.preview() as revision:
            for change in _in_order(self.changes):
                if change in seen:
                    result.notes.append(f"line {change.line} repeats line {seen[change]}")
                    continue
                seen[change] = change.line
                reason = apply_change(store, revision, change, show)
                if reason is not None:
                    times = "" if change.at is None else f", {show(change.at)}"
                    text = f"{change.op}, {change.head}, {change.rel}, {change.tail}{times}"
                    result.rejected.append(Rejection(change.line, text, reason))
                    continue
                result.accepted.append(change)
                if clock is not None and change.at is not None and change.at < clock:
                    result.late.append(change)
        result.rejected.sort()
        return result


def _in_order(changes: Sequence[Change]) -> list[Change]:
    # Retractions come first, so that what replaces them can be added; a fact may end and begin again at one instant.
    def order(change: Change) -> tuple[bool, int, bool]:
        return change.op != "retract", -(2**63) if change.at is None else change.at, change.op != "end"

    return sorted(changes, key=order)


def _named_facts(store: FactStore) -> Iterator[tuple[str, str, str, int, int | None]]:
    sql = (
        "SELECT h.name, r.name, t.name, valid_from, valid_to FROM facts JOIN entities h ON h.id = head "
        "JOIN relations r ON r.id = rel JOIN entities t ON t.id = tail ORDER BY facts.id"
    )
    yield from store.connection.execute(sql)
