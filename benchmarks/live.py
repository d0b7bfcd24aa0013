"""``python -m benchmarks.live``: what a live graph costs, end to end from the CSV, by number of entities.

Release 0 has initial values instead of trained ones. An update then costs the same per epoch and often needs more of
them. Each work is measured in a process of its own, so that its peak of memory is its own, too.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

DAYS = 3650
RELATIONS = 20
ADDED, ENDED, NEW = 400, 400, 50


def write_facts(path: Path, entities: int) -> None:
    """Ten facts per entity: intervals of a year on average over ten years, one in eight still open."""
    rng = np.random.default_rng(0)
    count = 10 * entities
    head, tail = rng.integers(0, entities, count), (rng.pareto(1.2, count) * entities / 50).astype(np.int64) % entities
    rel = rng.integers(0, RELATIONS, count)
    start = rng.integers(0, DAYS, count)
    end = start + rng.geometric(1 / 365, count)
    end[(end >= DAYS) | (rng.random(count) < 1 / 8)] = -1
    first = np.datetime64("2016-11-18")
    days = (first + np.arange(DAYS + 1)).astype(str)
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["head", "rel", "tail", "start", "end"])
        for h, r, t, a, b in zip(*(column.tolist() for column in (head, rel, tail, start, end)), strict=True):
            table.writerow([f"entity {h}", f"relation {r}", f"entity {t}", days[a], "" if b < 0 else days[b]])


def write_changes(graph: Path, path: Path) -> None:
    """400 additions, of which 50 have a new entity, and 400 ends of facts that hold."""
    from tkg_incremental import LiveGraph

    rng = np.random.default_rng(1)
    with LiveGraph(graph) as live, open(path, "w", newline="", encoding="utf-8") as file:
        store, at = live.folder.store, live.show(live.clock.now + 1)
        table = csv.writer(file)
        table.writerow(["op", "head", "rel", "tail", "at"])
        rows = store.connection.execute("SELECT head, rel, tail FROM facts WHERE valid_to IS NULL").fetchall()
        ended = {rows[i] for i in rng.choice(len(rows), 2 * ENDED, replace=False)}
        for head, rel, tail in sorted(ended)[:ENDED]:
            names = (*store.entity_names([head]), *store.relation_names([rel]), *store.entity_names([tail]))
            table.writerow(["end", *names, at])
        for i in range(ADDED):
            head = f"new entity {i}" if i < NEW else f"entity {int(rng.integers(store.num_entities))}"
            tail = int(rng.integers(store.num_entities))
            name = store.entity_names([tail])[0]
            table.writerow(["add", head, f"relation {i % RELATIONS}", name, at])


def create(graph: Path, facts: Path) -> dict[str, float]:
    """Imports the CSV and writes a release with initial values."""
    import math

    from tkg_incremental import LiveGraph
    from tkg_incremental.live.candidates import write_candidate
    from tkg_incremental.live.gate import GateReport, GateSettings

    gate = GateSettings(learned=0.0, kept=1.0, outranked=0.0, drift=0.0)
    imported = timed(lambda: LiveGraph.create(graph, facts, "day", gate=gate).close())
    with LiveGraph(graph, write=True) as live:
        store = live.folder.store
        model = live.settings.make_model(store.num_entities, store.num_relations, live.clock.num_steps)
        nothing = GateReport(math.nan, math.nan, math.nan, math.nan, math.nan, True)
        live.folder.release(write_candidate(live.folder, model, None, nothing, None, live.clock.now, {}))
    return {"import": imported}


def ask(graph: Path) -> dict[str, float]:
    """Opens the graph and asks: the first answer, and later ones."""
    from tkg_incremental import LiveGraph

    begin = time.perf_counter()
    with LiveGraph(graph) as live:
        live.query(None, "relation 1", "entity 1")
        first = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        times = [timed(lambda n=n: live.query(None, f"relation {n % 5}", f"entity {n}")) for n in range(2, 22)]
    return {"open + first answer": first, "query": sorted(times)[len(times) // 2], "peak MB": peak}


def update(graph: Path, changes: Path) -> dict[str, float]:
    """Updates the graph from a CSV and goes back."""
    from tkg_incremental import LiveGraph

    before = size(graph / "releases")
    begin, processor = time.perf_counter(), time.process_time()
    with LiveGraph(graph) as live:
        report = live.update(changes)
        seconds, processor = time.perf_counter() - begin, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        assert report.state == "released", report
        written = size(graph / "releases") - before
        back = timed(lambda: live.rollback(0))
    figures = {
        "update": seconds,
        "update processor": processor,
        "written MB": written / 1e6,
        "written share": written / before,
        "rollback": back,
    }
    assert report.gate is not None
    quality = {"learned": report.gate.learned, "outranked": report.gate.outranked}
    return {**figures, "update peak MB": peak, **quality}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(entities: int, folder: Path) -> dict[str, float]:
    """One row of the table."""
    graph, facts, changes = folder / "graph", folder / "facts.csv", folder / "changes.csv"
    write_facts(facts, entities)
    figures = {"entities": entities, **_in_process("create", graph, facts)}
    figures["tables MB"] = size(graph / "releases") / 1e6
    write_changes(graph, changes)
    return {**figures, **_in_process("ask", graph), **_in_process("update", graph, changes)}


def _in_process(work: str, *paths: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.live", "--work", work, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=dict(os.environ))
    figures = dict(json.loads(done.stdout.splitlines()[-1]))
    print(work, figures, file=sys.stderr, flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="ENTITIES")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        name, *paths = options.work
        figures = {"create": create, "ask": ask, "update": update}[name](*map(Path, paths))
        print(json.dumps(figures))
        return
    for entities in options.sizes:
        with TemporaryDirectory() as folder:
            figures = measure(entities, Path(folder))
        print(json.dumps({name: float(f"{value:.3g}") for name, value in figures.items()}), flush=True)


if __name__ == "__main__":
    main()
