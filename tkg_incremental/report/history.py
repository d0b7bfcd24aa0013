"""The page of a live graph: its answers through time, its releases, what changed, and what the gate said."""

from __future__ import annotations

import datetime
import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.report.figures import curve_figure
from tkg_incremental.report.svg import escape
from tkg_incremental.report.templates import render
from tkg_incremental.report.times import answers_through_time
from tkg_incremental.storage import atomic_write
from tkg_incremental.text import counted

if TYPE_CHECKING:
    from tkg_incremental.live.manifest import Release
    from tkg_incremental.live.records import Change
    from tkg_incremental.live.serving import ServedGraph

# Figures of a release: title, axis, what it says.
FIGURES = {
    "facts": ("Facts", "facts", "All facts of the store, ended ones included."),
    "learned": ("Learned", "share", "Share of the added facts that rank first among candidates of the right type."),
    "kept": ("Kept", "share", "The same for a sample of older facts that still hold."),
    "outranked": ("Outranked", "share", "Share of the ended facts that rank below what replaced them."),
    "drift": ("Drift", "overlap", "Overlap of the nearest neighbours of entities before and after; 1 is no drift."),
    "seconds": ("Time", "seconds", "From the file to the release."),
}
# Changes of a release that are listed.
SHOWN = 20


def write_history(graph: ServedGraph, path: str | os.PathLike[str] | None = None) -> Path:
    """Writes the history of a live graph as one self-contained HTML file.

    Args:
        graph: The graph.
        path: The file to write; by default ``history.html`` in its folder. It names entities: erase removes it.
    """
    target = graph.folder.path / "history.html" if path is None else Path(path)
    with atomic_write(target) as file:
        file.write(render_history(graph).encode())
    return target


def render_history(graph: ServedGraph) -> str:
    """The page as text."""
    store, releases, current = graph.folder.store, graph.history(), graph.current
    sources = {update.id: update.source for update in store.updates()}
    labels, pruned = [graph.show(release.clock) for release in releases], set(graph.folder.pruned())
    shown = []
    for release, label in zip(releases[::-1], labels[::-1], strict=True):
        changes = [change for update in release.updates for change in store.changes(update)]
        made = datetime.datetime.fromtimestamp(release.created / 1e6, datetime.timezone.utc)
        files = ", ".join(dict.fromkeys(filter(None, (sources.get(update, "") for update in release.updates))))
        what = release.metrics.get("reason") or "release"
        parts = [f"{what} of {made:%Y-%m-%d %H:%M} UTC", f"facts until {label}", counted(len(changes), "change"), files]
        parts += ["no longer on disk"] if release.number in pruned else []
        shown.append(
            {
                "title": f"Release {release.number}" + (", which answers" if release.number == current else ""),
                "about": " · ".join(filter(None, parts)),
                "verdict": _verdict(release),
                "rows": [_row(change, graph) for change in some_changes(changes)],
                "more": max(0, len(changes) - SHOWN),
            }
        )
    pending = sum(update.num_changes for update in store.updates("pending"))
    lead = [
        f"{counted(store.num_facts, 'fact')}, {counted(store.num_entities, 'entity', 'entities')}, "
        f"{counted(store.num_relations, 'relation')}, until {graph.show(graph.clock.now)}. Release {current} answers.",
    ]
    if pending:
        lead.append(f"{counted(pending, 'change')} pending: the gate has refused them, or an update was killed.")
    figures = [_figure(name, releases, labels) for name in FIGURES]
    times = answers_through_time(graph)
    title = f"History of {graph.folder.path.name}"
    return render("history.html", title=title, lead=lead, figures=figures, releases=shown, times=times)


def some_changes(changes: Sequence[Change]) -> list[Change]:
    """At most :data:`SHOWN` changes, in their order: the first ones of each kind."""
    counts: Counter[str] = Counter()
    places = []
    for place, change in enumerate(changes):
        places.append((counts[change.op], place))
        counts[change.op] += 1
    return [changes[place] for place in sorted(place for _, place in sorted(places)[:SHOWN])]


def _verdict(release: Release) -> str:
    metrics = release.metrics
    measured = {name: _value(metrics, name) for name in ("learned", "kept", "outranked", "drift")}
    parts = [f"{name} {value:.1%}" for name, value in measured.items() if not math.isnan(value)]
    reasons: Sequence[str] = metrics.get("reasons") or ()
    if reasons:
        return f"Released although the gate refused: {'; '.join(reasons)}."
    return f"Passed the gate: {', '.join(parts)}." if parts else "Nothing was measured."


def _row(change: Change, graph: ServedGraph) -> list[str]:
    names = [name or "[erased]" for name in (change.head, change.rel, change.tail)]
    return [change.op, *names, "" if change.at is None else graph.show(change.at)]


def _value(metrics: dict[str, Any], name: str) -> float:
    value = metrics.get(name)
    return math.nan if value is None else float(value)


def _figure(name: str, releases: Sequence[Release], labels: Sequence[str]) -> str:
    title, unit, text = FIGURES[name]
    values = [_value(release.metrics, name) for release in releases]
    numbers = [str(release.number) for release in releases]
    tips = [f"release {n}, until {label}: {value:.4g}" for n, label, value in zip(numbers, labels, values, strict=True)]
    return curve_figure(f"live-{name}", escape(title), text, (numbers, values, tips), ("release", unit), title)
