"""Sets of changes: what is added, ended and retracted, and whether it fits the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live.change_files import parse_record, read_records
from tkg_incremental.live.records import OPEN, OPS, Change, Rejection
from tkg_incremental.live.revisions import apply_change
from tkg_incremental.live.store import FactStore

Triple = tuple[str, str, str]


class ChangeSet:
    """Changes that belong to one update.

    Args:
        changes: The changes.
        rejected: Lines that could not be parsed or do not fit the store, with reasons.
    """

    def __init__(self, changes: Iterable[Change] = (), rejected: Iterable[Rejection] = ()) -> None:
        self.changes, self.rejected = list(changes), list(rejected)
        #: Remarks, such as repeated lines.
        self.notes: list[str] = []
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
    def read(
        cls, source: Any, parse: Callable[[str], int], at: int | None = None, read: ReadOptions | None = None
    ) -> ChangeSet:
        """Reads changes.

        Args:
            source: The path of a CSV, TSV, JSON lines or Parquet file, a data frame, or a sequence of mappings or
                tuples, with an ``op``: ``add``, ``end``, ``retract``, or ``+`` and ``-`` for the first two.
            parse: Makes an instant of a text.
            at: The instant of additions and ends without one.
            read: Names of columns, and what separates the fields.

        Raises:
            DataError: If the source cannot be read at all. Single bad lines are among ``rejected``.
        """
        records = read_records(source, read or ReadOptions())
        found = [parse_record(record, line, parse, at) for line, record in records]
        return cls([c for c in found if isinstance(c, Change)], [r for r in found if isinstance(r, Rejection)])

    @classmethod
    def from_full_export(
        cls, store: FactStore, facts: Iterable[tuple[str, str, str, int, int | None]], at: int
    ) -> ChangeSet:
        """The differences between a new full export and the present state of a store. Facts that the export lacks end
        at ``at`` if they hold there. Those of the past stay, since an export of the present does not list them.

        Args:
            store: The store.
            facts: Head, relation, tail, first instant and first instant at which the fact no longer holds, or ``None``.
            at: When facts that the export lacks have ended.
        """
        new: dict[tuple[Triple, int], int] = {}
        spans: dict[Triple, list[tuple[int, int]]] = {}
        for head, rel, tail, start, end in facts:
            triple, until = (head, rel, tail), OPEN if end is None else end
            new[triple, start] = until
            spans.setdefault(triple, []).append((start, until))
        changes = []
        for head, rel, tail, start, until in store.connection.execute(_NAMED_FACTS):
            triple = head, rel, tail
            wanted = new.pop((triple, start), None)
            if wanted is None:
                if any(low < until and start < high for low, high in spans.get(triple, ())):
                    changes.append(Change("retract", *triple, start))  # the export has it with another beginning
                elif start < at < until:
                    changes.append(Change("end", *triple, at))
            elif wanted < until:
                changes.append(Change("end", *triple, wanted))
            elif wanted > until:
                changes += [Change("retract", *triple, start), _addition(triple, start, wanted)]
        changes += [_addition(triple, start, until) for (triple, start), until in new.items()]
        return cls(changes)

    @property
    def content_hash(self) -> str:
        """Identifies the content, whatever the format of the file and the order of its lines."""
        rows = sorted({json.dumps([c.op, c.head, c.rel, c.tail, c.at, c.until]) for c in self.changes})
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def validate(self, store: FactStore, show: Callable[[int], str] = str) -> ChangeSet:
        """Applies the changes on top of the pending ones and undoes it. Gives those that fit, retractions first, then
        in the order of their time, and the others as rejected lines. ``show`` formats instants for the reasons."""
        result = ChangeSet((), self.rejected)
        seen: dict[Change, int] = {}
        with store.preview() as revision:
            for change in sorted(self.changes, key=_order):
                if change in seen:
                    result.notes.append(f"line {change.line} repeats line {seen[change]}")
                    continue
                seen[change] = change.line
                reason = apply_change(store, revision, change, show)
                if reason is None:
                    result.changes.append(change)
                else:
                    result.rejected.append(reject(change, reason, show))
        result.rejected.sort()
        return result


_NAMED_FACTS = (
    f"SELECT h.name, r.name, t.name, valid_from, coalesce(valid_to, {OPEN}) FROM facts JOIN entities h ON h.id = head "
    "JOIN relations r ON r.id = rel JOIN entities t ON t.id = tail ORDER BY facts.id"
)


def _addition(triple: Triple, start: int, until: int) -> Change:
    return Change("add", *triple, start, None if until == OPEN else until)


def _order(change: Change) -> tuple[bool, int, bool]:
    # Retractions come first, so that what replaces them can be added; a fact may end and begin again at one instant.
    return change.op != "retract", -(2**63) if change.at is None else change.at, change.op != "end"


def reject(change: Change, reason: str, show: Callable[[int], str]) -> Rejection:
    """A change as a rejected line."""
    parts = [change.op, change.head, change.rel, change.tail, *([] if change.at is None else [show(change.at)])]
    return Rejection(change.line, ", ".join(parts), reason)
