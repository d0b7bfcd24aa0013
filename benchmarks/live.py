"""``python -m benchmarks.live``: what a live graph costs, end to end from the CSV, by number of entities.

Release 0 has random values, of about the size of trained ones, and a gate that everything passes. An update then costs
the same per epoch and needs more of them; what it keeps of release 0 says nothing. Each work is measured in a
process of its own, so that its peak of memory is its own, too.
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
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Measurement, Timing, Unavailable, at_most, in_seconds, ratio_at_most
from benchmarks.lab import Lab

DAYS = 3650
RELATIONS = 20
CHANGED = 400
# Standard deviation of the values of release 0: those of trained graphs have 0.2 (steps) to 0.7 (relations).
SPREAD = 0.4
# Graphs of this size take half an hour to create.
LARGE = 1_000_000


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


def write_changes(graph: Path, path: Path, changed: int = CHANGED) -> None:
    """Additions, of which one in eight has a new entity, and as many ends of facts that hold."""
    from tkg_incremental import LiveGraph

    rng = np.random.default_rng(1)
    with LiveGraph(graph) as live, open(path, "w", newline="", encoding="utf-8") as file:
        store, at = live.folder.store, live.show(live.clock.now + 1)
        table = csv.writer(file)
        table.writerow(["op", "head", "rel", "tail", "at"])
        rows = store.connection.execute("SELECT head, rel, tail FROM facts WHERE valid_to IS NULL").fetchall()
        ended = {rows[i] for i in rng.choice(len(rows), 2 * changed, replace=False)}
        for head, rel, tail in sorted(ended)[:changed]:
            names = (*store.entities.of([head]), *store.relations.of([rel]), *store.entities.of([tail]))
            table.writerow(["end", *names, at])
        for i in range(changed):
            head = f"new entity {i}" if i < changed // 8 else f"entity {int(rng.integers(store.num_entities))}"
            tail = int(rng.integers(store.num_entities))
            name = store.entities.of([tail])[0]
            table.writerow(["add", head, f"relation {i % RELATIONS}", name, at])


def create(graph: Path, facts: Path) -> dict[str, float]:
    """Imports the CSV and writes a release with random values."""
    import math

    import torch

    from tkg_incremental import LiveGraph
    from tkg_incremental.answers.features import NUM_FEATURES, NUM_OWN
    from tkg_incremental.live.gate import GateReport, GateSettings
    from tkg_incremental.live.release_model import write_model
    from tkg_incremental.metrics.calibration import AnswerCalibration, Calibration

    # Any calibration, so that answers have probabilities.
    calibration = AnswerCalibration(*(Calibration((1.0,) + (0.0,) * (n - 1), 0.0) for n in (NUM_FEATURES, NUM_OWN)))
    gate = GateSettings(learned=0.0, kept=1.0, outranked=0.0, drift=0.0)
    imported = timed(lambda: LiveGraph.create(graph, facts, "day", gate=gate).close())
    with LiveGraph(graph, write=True) as live:
        store = live.folder.store
        model = live.settings.make_model(store.num_entities, store.num_relations, live.clock.num_steps)
        generator = torch.Generator().manual_seed(0)
        for table in model.tables().values():
            table.data.normal_(0, SPREAD, generator=generator)
        nothing = GateReport(math.nan, math.nan, math.nan, math.nan, math.nan, True)
        live.folder.release(write_model(live.folder, model, None, nothing, calibration, live.clock.now, {}))
    return {"import": imported}


def ask(graph: Path) -> dict[str, float]:
    """Opens the graph and asks: the first answer, and later ones."""
    from tkg_incremental import LiveGraph

    begin, processor = time.perf_counter(), time.process_time()
    with LiveGraph(graph) as live:
        live.query(None, "relation 1", "entity 1")
        first, processor = time.perf_counter() - begin, time.process_time() - processor
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        busy = time.process_time()
        times = [timed(lambda n=n: live.query(None, f"relation {n % 5}", f"entity {n}")) for n in range(2, 42)]
        busy = (time.process_time() - busy) / len(times)
    median = sorted(times)[len(times) // 2]
    figures = {"open + first answer": first, "open processor": processor, "query": median, "query processor": busy}
    return {**figures, "peak MB": peak}


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
        busy = time.process_time()
        back = timed(lambda: live.rollback(0))
        busy = time.process_time() - busy
    figures = {
        "update": seconds,
        "update processor": processor,
        "written MB": written / 1e6,
        "written share": written / before,
        "rollback": back,
        "rollback processor": busy,
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


def measure(entities: int, folder: Path, changed: int = CHANGED) -> dict[str, float]:
    """The figures of one size."""
    graph, facts, changes = folder / "graph", folder / "facts.csv", folder / "changes.csv"
    write_facts(facts, entities)
    figures = {"entities": entities, **_in_process("create", graph, facts)}
    figures["tables MB"] = size(graph / "releases") / 1e6
    figures["facts MB"] = (graph / "facts.db").stat().st_size / 1e6
    write_changes(graph, changes, changed)
    return {**figures, **_in_process("ask", graph), **_in_process("update", graph, changes)}


def _in_process(work: str, *paths: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.live", "--work", work, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=dict(os.environ))
    figures = dict(json.loads(done.stdout.splitlines()[-1]))
    print(work, figures, file=sys.stderr, flush=True)
    return figures


@cache
def _figures(lab: Lab, entities: int) -> dict[str, float]:
    if entities >= LARGE and not lab.large:
        raise Unavailable(f"a graph of {entities:,} entities takes half an hour; run it with --large")
    with TemporaryDirectory() as folder:
        return measure(entities, Path(folder), lab.sizes.changed)


def _graph(lab: Lab, which: int) -> str:
    entities = lab.sizes.live_graphs[which]
    return f"{entities:,} entities, {10 * entities:,} facts, {DAYS:,} days"


def seconds(lab: Lab, which: int, what: str, work: str) -> Measurement:
    """Seconds of some work; with one thread, seconds of CPU, as of the other benchmarks. The others are in its
    description."""
    found = _figures(lab, lab.sizes.live_graphs[which])
    elapsed, busy = found[what], found[f"{what.split(' ')[0]} processor"]
    value, other = (busy, f"{elapsed:.3g} s elapsed") if lab.threads == 1 else (elapsed, f"{busy:.3g} s of CPU")
    changed = f"{lab.sizes.changed} added, {lab.sizes.changed} ended, {lab.sizes.changed // 8} new entities"
    return in_seconds(f"{work.format(changed=changed)}; {_graph(lab, which)} ({other})", Timing([value]))


def megabytes(lab: Lab, which: int, what: str, of: tuple[str, ...], work: str, reference: str) -> Measurement:
    """Megabytes, beside those of the tables or facts."""
    found = _figures(lab, lab.sizes.live_graphs[which])
    whole = sum(found[name] for name in of)
    text = f"{work}; {_graph(lab, which)}"
    return Measurement(text, found[what], "MB", reference, whole, found[what] / whole)


def _benchmarks(which: int, name: str, update: float | None = None, is_large: bool = False) -> list[Benchmark]:
    opened, updated = (
        "opening a graph and its first answer",
        "an update from the CSV to the released answer ({changed})",
    )
    memory, written = ("tables MB", "facts MB"), ("tables MB",)
    return [
        Benchmark(
            f"live/open-{name}",
            partial(seconds, which=which, what="open + first answer", work=opened),
            (at_most(5.0),) if is_large else (),
        ),
        Benchmark(
            f"live/memory-{name}",
            partial(megabytes, which=which, what="peak MB", of=memory, work=f"peak of {opened}", reference="the files"),
            (ratio_at_most(1.3),) if is_large else (),
        ),
        Benchmark(
            f"live/query-{name}",
            partial(seconds, which=which, what="query", work="a query on an open graph"),
            (at_most(0.05),),
        ),
        Benchmark(
            f"live/update-{name}",
            partial(seconds, which=which, what="update", work=updated),
            () if update is None else (at_most(update),),
        ),
        Benchmark(
            f"live/written-{name}",
            partial(
                megabytes, which=which, what="written MB", of=written, work="written by it", reference="the tables"
            ),
            (ratio_at_most(0.05),) if is_large else (),
        ),
        Benchmark(
            f"live/rollback-{name}",
            partial(seconds, which=which, what="rollback", work="a rollback of it"),
            (at_most(1.0),),
        ),
    ]


BENCHMARKS = [
    *_benchmarks(0, "10k", update=3.0),
    *_benchmarks(1, "100k"),
    *_benchmarks(2, "1m", update=10.0, is_large=True),
]


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
