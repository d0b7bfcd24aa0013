"""``history``: the releases of a live graph."""

from __future__ import annotations

import argparse
import datetime
import math
from dataclasses import asdict

from tkg_incremental.cli.arguments import Commands, add_command
from tkg_incremental.cli.errors import OK
from tkg_incremental.cli.graph_io import add_graph, add_json, open_graph, print_json
from tkg_incremental.tables import format_table
from tkg_incremental.text import counted, printable

DESCRIPTION = """
The releases of a live graph with what the gate measured, and the changes that are pending. A
release that was pruned is no longer on disk: it cannot answer or be rolled back to.
"""
EXAMPLES = """
tkg-incremental history graphs/company
tkg-incremental history graphs/company --json
"""
METRICS = ("learned", "kept", "outranked", "drift")


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "history", "the releases of a live graph", DESCRIPTION, EXAMPLES, run)
    add_graph(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    with open_graph(args.graph) as graph:
        releases, current, clock = graph.history(), graph.current, graph.clock
        updates = {update.id: update for update in graph.folder.store.updates()}
        shown = {release.number: graph.show(release.clock) for release in releases}
        pending = [update for update in updates.values() if update.state == "pending"]
        until, pruned = graph.show(clock.now), set(graph.folder.pruned())
    if args.json:
        from tkg_incremental.live.manifest import RECORDED

        print_json(
            {
                "current": current,
                "until": until,
                "releases": [
                    {
                        **{key: getattr(release, key) for key in RECORDED},
                        "until": shown[release.number],
                        "pruned": release.number in pruned,
                    }
                    for release in releases
                ],
                "pending": [asdict(update) for update in pending],
            }
        )
        return OK
    rows: list[list[str | float]] = []
    for release in releases:
        made = datetime.datetime.fromtimestamp(release.created / 1e6, datetime.timezone.utc)
        changes = sum(updates[update].num_changes for update in release.updates if update in updates)
        values = [release.metrics.get(name) for name in METRICS]
        mark = "answers" if release.number == current else "pruned" if release.number in pruned else ""
        row: list[str | float] = [release.number, f"{made:%Y-%m-%d %H:%M}", shown[release.number], changes]
        rows.append([*row, *(value if isinstance(value, float) else math.nan for value in values), mark])
    print(format_table(["release", "made (UTC)", "until", "changes", *METRICS, ""], rows))
    for update in pending:
        print(printable(f"pending: {counted(update.num_changes, 'change')} of {update.source or 'an update'}"))
    return OK
