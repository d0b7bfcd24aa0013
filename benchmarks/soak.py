"""``python -m benchmarks.soak``: hundreds of updates in a row on a small graph, to see what grows and what is lost.

Each update adds, ends and retracts facts, some of them late; now and then the graph goes back to an earlier release. A
plain dictionary gets the same changes and says what must be true. Every ten updates a line is printed: memory, open
files, size of the folder, seconds per update, and the share of facts that rank first. The last line is a summary.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

from tkg_incremental import LiveGraph
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.questions import Questions
from tkg_incremental.live.timelines import whole_timeline

Triple = tuple[str, str, str]
#: Beginning and end of each fact, in days; the end is exclusive, :obj:`None` if it holds.
Facts = dict[Triple, list[tuple[int, int | None]]]

TEAMS, CITIES, PEOPLE, FIRST = 8, 12, 80, 200


def first_facts(rng: random.Random) -> Facts:
    """Each person works in a team and lives in a city; each team has a leader."""
    facts: Facts = {}
    for person in range(PEOPLE):
        facts[f"person {person}", "works in", f"team {rng.randrange(TEAMS)}"] = [(rng.randrange(FIRST), None)]
        facts[f"person {person}", "lives in", f"city {rng.randrange(CITIES)}"] = [(rng.randrange(FIRST), None)]
    for team in range(TEAMS):
        facts[f"person {team}", "leads", f"team {team}"] = [(0, 100)]
        facts[f"person {team + TEAMS}", "leads", f"team {team}"] = [(100, None)]
    return facts


def holding(facts: Facts, at: int) -> set[Triple]:
    """The facts that hold on a day."""
    return {fact for fact, spans in facts.items() if any(a <= at and (b is None or at < b) for a, b in spans)}


def change(facts: Facts, at: int, rng: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    """The changes of one day, applied to the facts as well: moves, a new leader, a new person, now and then a
    retraction or a late fact."""
    changes: dict[str, list[tuple[Any, ...]]] = {"added": [], "ended": [], "retracted": []}

    def add(fact: Triple, begin: int, end: int | None = None) -> None:
        changes["added"].append((*fact, begin))
        facts.setdefault(fact, []).append((begin, end))

    def stop(fact: Triple) -> None:
        changes["ended"].append((*fact, at))
        facts[fact][-1] = facts[fact][-1][0], at

    for rel, count, places in (("lives in", 2, CITIES), ("leads", 1, TEAMS)):
        for fact in rng.sample(sorted(f for f in holding(facts, at) if f[1] == rel), count):
            stop(fact)
            if rel == "lives in":
                kind = fact[2].split()[0]
                place = rng.choice([n for n in range(places) if f"{kind} {n}" != fact[2]])
                new = fact[0], rel, f"{kind} {place}"
            else:
                new = f"person {rng.randrange(PEOPLE)}", rel, fact[2]
            if new not in holding(facts, at):
                add(new, at)
    if rng.random() < 0.2:
        add((f"new person {at}", "works in", f"team {rng.randrange(TEAMS)}"), at)
    if rng.random() < 0.1:
        kept = sorted(f for f in facts if f[1] == "works in" and len(facts[f]) == 1 and facts[f][0][0] < at)
        wrong = rng.choice(kept)
        changes["retracted"].append(wrong)
        del facts[wrong]
    if rng.random() < 0.1:
        late = f"person {rng.randrange(PEOPLE)}", "advises", f"team {rng.randrange(TEAMS)}"
        if late not in facts:
            add(late, at - rng.randrange(1, 50))
    return changes


def write_export(path: Path, facts: Facts) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["head", "rel", "tail", "start", "end"])
        for fact, spans in facts.items():
            table.writerows([*fact, a, "" if b is None else b - 1] for a, b in spans)


def measure(graph: LiveGraph, facts: Facts, at: int) -> dict[str, float]:
    """Compares the store with the dictionary, and measures the model and the process."""
    store, clock = graph.folder.store, graph.clock
    assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert graph.current == graph.folder.releases.current()
    names = store.entities.of(range(store.num_entities)), store.relations.of(range(store.num_relations))
    columns = (column.tolist() for column in store.facts_arrays()[1:])
    stored = {
        (names[0][h], names[1][r], names[0][t], a, None if b >= 2**62 else b)
        for h, r, t, a, b in zip(*columns, strict=True)
    }
    expected = {(*fact, a, b) for fact, spans in facts.items() for a, b in spans}
    assert stored == expected, stored ^ expected
    assert clock.now == at, (clock.now, at)
    everything = whole_timeline(store, clock).observed
    past = everything.between(0, clock.num_steps - 1).sample(500, None)
    files = [path for path in graph.folder.path.rglob("*") if path.is_file()]
    begin = time.process_time()
    with LiveGraph(graph.folder.path) as other:
        assert len(other.query(None, "leads", "team 0")) == 10
    opened = time.process_time() - begin

    def first(quads: Tensor) -> float:
        return Questions(quads, store, clock, graph.model.static_entities).share_first(graph.model)

    with open("/proc/self/statm", encoding="ascii") as statm:
        resident = int(statm.read().split()[1]) * resource.getpagesize() / 1e6
    return {
        "facts": len(expected),
        "first now": first(everything.at(clock.num_steps - 1)),
        "first ever": first(past),
        "open s": opened,
        "memory MB": resident,
        "open files": len(os.listdir("/proc/self/fd")),
        "folder MB": sum(path.stat().st_size for path in files) / 1e6,
        "store MB": (graph.folder.path / "facts.db").stat().st_size / 1e6,
        "files": len(files),
    }


def run(folder: Path, updates: int, every: int) -> list[dict[str, float]]:
    rng = random.Random(0)
    facts = first_facts(rng)
    write_export(folder / "facts.csv", facts)
    settings = LiveSettings(hidden_channels=64)
    gate = GateSettings(learned=0.8, kept=0.1, outranked=0.8, drift=0.0)
    graph = LiveGraph.create(folder / "graph", folder / "facts.csv", "index", settings=settings, gate=gate)
    print(graph.train(calibrate=False), flush=True)
    at = graph.clock.now
    states = {0: (at, dict(facts))}
    lines, seconds, refused, back = [], [], 0, 0
    for number in range(1, updates + 1):
        begin = time.process_time()
        if number % 47 == 0:  # back by up to ten releases
            to = rng.choice(sorted(states)[-10:])
            graph.rollback(to)
            at, facts = states[to][0], {fact: list(spans) for fact, spans in states[to][1].items()}
            back += 1
        else:
            at += 1
            report = graph.update(**change(facts, at, rng), at=at)
            if report.state == "refused":
                refused += 1
                report = graph.update(force=True)
            assert report.state == "released", report
            assert report.release is not None
            states[report.release] = at, {fact: list(spans) for fact, spans in facts.items()}
            states = dict(sorted(states.items())[-20:])
        seconds.append(time.process_time() - begin)
        if number % every == 0:
            mean = sum(seconds[-every:]) / every
            lines.append({"update": number, "cpu s": mean, **measure(graph, facts, at)})
            print(json.dumps({key: float(f"{value:.4g}") for key, value in lines[-1].items()}), flush=True)
    graph.close()
    with LiveGraph(folder / "graph") as again:
        measure(again, facts, at)
    ends = {key: [float(f"{line[key]:.4g}") for line in (lines[0], lines[-1])] for key in lines[0]}
    print(json.dumps({"refused": refused, "rollbacks": back, "first and last": ends}))
    return lines


def draw(lines: list[dict[str, float]], target: Path) -> None:
    """Draws the curves.

    Args:
        lines: What was measured.
        target: The file; by its ending SVG, PNG, ….
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = (("first now", "first ever"), ("cpu s", "open s"), ("memory MB",), ("folder MB", "store MB"))
    figure, axes = pyplot.subplots(1, len(groups), figsize=(13, 2.6), layout="constrained")
    for names, plot in zip(groups, axes, strict=True):
        for name in names:
            plot.plot([line["update"] for line in lines], [line[name] for line in lines], label=name, linewidth=1)
        plot.set_ylim(bottom=0.9 if "first now" in names else 0)
        plot.legend(frameon=False, fontsize=8)
        plot.set_xlabel("updates")
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--every", type=int, default=10, help="updates between two lines")
    parser.add_argument("--plot", type=Path, help="draw the curves into this file")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        lines = run(Path(folder), options.updates, options.every)
    if options.plot:
        draw(lines, options.plot)


if __name__ == "__main__":
    main()
