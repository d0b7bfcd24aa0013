"""The plain records that the parts of a live graph exchange, and its errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

#: The end of an open interval in arrays. In records an open end is ``None``.
OPEN = 2**63 - 1
#: The kinds of change.
OPS = ("add", "end", "retract")


class GraphFolderError(Exception):
    """A folder holds no graph, or one that is damaged, of another version, or in another state than a call needs."""


class GraphLockedError(GraphFolderError):
    """Another process is writing to the graph."""


class Fact(NamedTuple):
    """A fact of the store: ids and its interval of valid time."""

    id: int
    head: int
    rel: int
    tail: int
    valid_from: int
    valid_to: int | None

    def holds(self, at: int) -> bool:
        """Whether the fact holds at an instant."""
        return self.valid_from <= at and (self.valid_to is None or at < self.valid_to)


@dataclass(frozen=True)
class Change:
    """One change of the graph.

    Args:
        op: ``"add"`` (the fact begins at ``at``), ``"end"`` (it no longer holds from ``at`` on) or ``"retract"``
            (it was never true).
        head: Name of the head entity.
        rel: Name of the relation.
        tail: Name of the tail entity.
        at: The instant. A retraction without one applies to all intervals of the triple, otherwise to the interval
            that holds at ``at``.
        until: For an addition, the first instant at which the fact no longer holds; ``None`` leaves it open.
        line: Where the change comes from: line of a file or position in a sequence, from 1.
    """

    op: str
    head: str
    rel: str
    tail: str
    at: int | None = None
    until: int | None = None
    line: int = field(default=0, compare=False)


class Rejection(NamedTuple):
    """A line that is not applied."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Update:
    """A recorded set of changes.

    Args:
        id: Number of the update.
        recorded_at: When it was recorded, in microseconds since 1970 (UTC).
        clock: The last step of the graph once the update is applied.
        source: What the user called it, such as the name of the file.
        release: The release it belongs to; ``None`` while it is pending.
        state: ``"pending"``, ``"applied"``, or ``"undone"`` if its release is no ancestor of the current one.
        num_changes: Number of changes.
    """

    id: int
    recorded_at: int
    clock: int
    source: str
    release: int | None
    state: str
    num_changes: int
