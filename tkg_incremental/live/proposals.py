"""The changes that a caller proposes: read, dated and validated against the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live.changes import ChangeSet, reject
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.importing import LEAP, read_named_facts
from tkg_incremental.live.reading import date_parser, to_iso
from tkg_incremental.live.records import Change
from tkg_incremental.live.store import FactStore

Rows = Iterable[tuple[Any, ...]]

# Arguments of an update by the kind of change.
_ARGUMENTS = {"add": "added", "end": "ended", "retract": "retracted"}
# Stands for the date of a change that has none until the update's date is known.
UNDATED = -(2**61)
# New names that the report of an update lists.
_SHOWN = 5


def read_changes(
    store: FactStore,
    clock: GraphClock,
    changes: Any,
    given: dict[str, Rows],
    full: Any,
    when: int,
    read: ReadOptions,
) -> ChangeSet:
    """The changes of a file, of arguments, or between the store and a full export.

    Args:
        store: The store.
        clock: The time axis.
        changes: A file or data frame with an ``op`` column.
        given: Facts by ``op``, with or without a date.
        full: A full export.
        when: When facts that a full export lacks have ended.
        read: How files are read.
    """
    listed: dict[str, list[Any]] = {op: list(facts) for op, facts in given.items()}
    if sum([changes is not None, full is not None, any(listed.values())]) > 1:
        raise ValueError("only one of changes, full, and added, ended or retracted must be given")
    if full is not None:
        with store.preview():
            return ChangeSet.from_full_export(
                store, read_named_facts(full, clock.unit, read, clock.origin).rows(), when
            )
    if changes is not None:
        return ChangeSet.read(changes, date_parser(clock.unit, read), UNDATED, read)
    found = []
    for op, facts in listed.items():
        for line, fact in enumerate(facts, 1):
            if isinstance(fact, str) or len(fact) not in (3, 4):  # a single fact instead of a list is one of strings
                raise ValueError(
                    f"{_ARGUMENTS[op]} must be a list of (head, rel, tail) or (…, at) (got {fact!r} in it)"
                )
            head, rel, tail, *own = fact
            date = to_iso(own[0], clock.unit, read) if own else None
            instant = clock.instant(date) if own else None if op == "retract" else UNDATED
            found.append(Change(op, head, rel, tail, instant, line=line))
    return ChangeSet(found)


def new_names(store: FactStore, changes: Iterable[Change], sizes: Mapping[str, int]) -> dict[str, list[str]]:
    """Entities and relations of additions that a release with these ``sizes`` does not know. Undone and pending changes
    have given ids to theirs."""
    added = [change for change in changes if change.op == "add"]
    entities = dict.fromkeys(name for change in added for name in (change.head, change.tail))
    relations = dict.fromkeys(change.rel for change in added)
    known = store.entities.up_to(sizes.get("entities", 0)), store.relations.up_to(sizes.get("relations", 0))
    return {
        "entities": [name for name in entities if known[0].find(name) is None],
        "relations": [name for name in relations if known[1].find(name) is None],
    }


def describe_changes(
    new: Mapping[str, list[str]],
    changes: Iterable[Change],
    clock: GraphClock,
    at: int | None,
    show: Callable[[int], str],
) -> list[str]:
    """Remarks on valid changes that may be typing errors.

    Args:
        new: Names of new entities and relations.
        changes: The changes.
        clock: The time axis.
        at: The date of the update, if it was given.
        show: Formats instants.
    """
    notes = [
        f"new {kind}: {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
        for kind, names in new.items()
        if names
    ]
    dates = [change.at for change in changes if change.at is not None]
    early = [date for date in dates if date < clock.origin]
    if early:
        notes.append(f"changes dated before the first step, {show(clock.origin)}, which count from it: {len(early)}")
    late = [] if at is None else [date for date in dates if date > max(at, clock.now)]
    if late and at is not None:
        notes.append(f"changes dated after {show(at)}, which move the last step to {show(max(late))}: {len(late)}")
    return notes


def date_changes(changes: ChangeSet, when: int) -> ChangeSet:
    """Changes without a date take effect at ``when``."""
    dated = [replace(change, at=when) if change.at == UNDATED else change for change in changes]
    return ChangeSet(dated, changes.rejected)


def is_dated(changes: ChangeSet) -> bool:
    """Whether all changes have a date of their own."""
    return not any(change.at in (None, UNDATED) for change in changes)


def check_date(clock: GraphClock, at: Any, show: Callable[[int], str]) -> int:
    """The instant of an update's date, if it is within reach of the clock."""
    instant, limit = clock.instant(at), _limit(clock, clock.now)
    if not clock.origin <= instant <= limit:
        raise ValueError(f"at must be in {show(clock.origin)} … {show(limit)} (got {at!r})")
    return instant


def validate_changes(
    store: FactStore, clock: GraphClock, found: ChangeSet, now: int, show: Callable[[int], str]
) -> ChangeSet:
    """Which changes fit the store. Dates far after ``now`` do not."""
    limit = _limit(clock, now)
    far = [change for change in found if change.at is not None and change.at > limit]
    reason = f"the date is far after the last step, {show(clock.now)}"
    rejected = [reject(change, reason, show) for change in far]
    near = [change for change in found if change.at is None or change.at <= limit]
    return ChangeSet(near, [*found.rejected, *rejected]).validate(store, show)


def _limit(clock: GraphClock, now: int) -> int:
    return now + max(LEAP, clock.num_steps)


def count_changes(changes: Iterable[Change]) -> dict[str, Any]:
    """Number of added, ended and retracted facts."""
    ops = [change.op for change in changes]
    return {"added": ops.count("add"), "ended": ops.count("end"), "retracted": ops.count("retract")}
