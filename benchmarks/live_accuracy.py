"""``python -m benchmarks.live_accuracy``: a live graph updated step by step against a model retrained at the end.

The graph is trained on the train facts known before the first step and then updated with each step's changes. A second
graph is trained from scratch on everything known at the end, with the same settings. Both are judged on the same
questions, as a dataset's models are: train facts that hold at the last step and at all steps (ranked first among
candidates of the right type, other true answers left out), and test facts, which neither has seen (among all entities).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from tkg_incremental import LiveGraph
from tkg_incremental.answers import known_facts_ranked_first
from tkg_incremental.data import Timeline
from tkg_incremental.datasets import TKGDataset
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import TKGModel
from tkg_incremental.ops.answers import FIRST, LAST
from tkg_incremental.registry import make_dataset

#: First step that is learnt by an update: 1990 of WorldLeaders; the steps of the paper for Wikidata12k.
FIRST_STEPS = {"WorldLeaders": 40, "Wikidata12k": 54}

Facts = list[tuple[str, str, str, int, int]]


def named_facts(dataset: TKGDataset) -> Facts:
    """Train facts with names, first and last step."""
    return [
        (dataset.entities[h], dataset.relations[r], dataset.entities[t], first, last)
        for h, r, t, first, last in dataset.timeline.observed.facts.tolist()
    ]


def create(folder: Path, facts: Facts, step: int, settings: LiveSettings) -> tuple[LiveGraph, float]:
    """A graph trained on the facts that are known at a step, and the seconds of processor time of its training."""
    export = folder.with_suffix(".csv")
    with export.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["head", "rel", "tail", "start", "end"])
        for head, rel, tail, first, last in facts:
            if first <= step:
                table.writerow([head, rel, tail, first, last if last < step else ""])
    graph = LiveGraph.create(folder, export, unit="index", settings=settings)
    begin = time.process_time()
    report = graph.train(calibrate=False)
    seconds = time.process_time() - begin
    if graph.clock.now < step:  # nothing begins or ends at the last step
        graph.update(at=step)
    print(f"until step {step}: {report} ({seconds:.1f} s CPU)", file=sys.stderr, flush=True)
    return graph, seconds


def as_dataset_model(graph: LiveGraph, dataset: TKGDataset) -> TKGModel:
    """The graph's model with the ids of a dataset. Entities that the graph does not have keep initial values."""
    store, model = graph.folder.store, graph.model
    made = graph.settings.make_model(dataset.num_entities, dataset.num_relations, dataset.num_steps)
    entities = {i: found for i, name in enumerate(dataset.entities) if (found := store.entities.find(name)) is not None}
    relations = {
        2 * i + side: 2 * found + side
        for i, name in enumerate(dataset.relations)
        if (found := store.relations.find(name)) is not None
        for side in (0, 1)
    }
    steps = {step: step - graph.clock.origin for step in range(graph.clock.origin, graph.clock.now + 1)}
    with torch.no_grad():
        for name, axis in made.axes.items():
            ids = {"entity": entities, "relation": relations, "time": steps}[axis]
            theirs = torch.tensor(list(ids.values()))
            made.tables()[name][torch.tensor(list(ids))] = model.tables()[name][theirs]
    return made.eval()


def holding_timeline(timeline: Timeline) -> Timeline:
    """The timeline with the train facts that hold at the last step, at that step only."""
    facts = timeline.observed.facts
    now = facts[facts[:, LAST] >= timeline.num_steps - 1].clone()
    now[:, FIRST] = timeline.num_steps - 1
    splits = {"train": now, "val": timeline.val.facts, "test": timeline.split("test").facts}
    return Timeline(splits, timeline.num_entities, timeline.num_relations, timeline.axis)


def judge(model: TKGModel, dataset: TKGDataset, first: int) -> dict[str, float]:
    """What a model knows and predicts."""
    timeline = dataset.timeline
    evaluator = Evaluator(timeline)
    before, since = evaluator.link_prediction(model, 0, first - 1), evaluator.link_prediction(model, first)
    return {
        "facts that hold first": known_facts_ranked_first(model, holding_timeline(timeline)),
        "facts of all steps first": known_facts_ranked_first(model, timeline, 4000),
        "test Hits@10 before": before["Hits@10"],
        "test Hits@10 since": since["Hits@10"],
        "test MRR before": before["MRR"],
        "test MRR since": since["MRR"],
    }


def compare(name: str, folder: Path, settings: LiveSettings, root: str) -> dict[str, Any]:
    """Figures of both graphs."""
    dataset = make_dataset(name, root)
    first, facts = FIRST_STEPS[name], named_facts(dataset)
    updated, trained = create(folder / "updated", facts, first - 1, settings)
    seconds: list[float] = []
    refused = 0
    for step in range(first, dataset.num_steps):
        added = [fact[:3] for fact in facts if fact[3] == step]
        ended = [fact[:3] for fact in facts if fact[4] == step - 1]
        begin = time.process_time()
        report = updated.update(added=added, ended=ended, at=step)
        if report.state == "refused":
            refused += 1
            report = updated.update(force=True)
        seconds.append(time.process_time() - begin)
        print(f"{dataset.timeline.labels[step]}: {report} ({seconds[-1]:.1f} s CPU)", file=sys.stderr, flush=True)
    with updated:
        figures = {"updated": judge(as_dataset_model(updated, dataset), dataset, first)}
    retrained, again = create(folder / "retrained", facts, dataset.num_steps - 1, settings)
    with retrained:
        figures["retrained"] = judge(as_dataset_model(retrained, dataset), dataset, first)
    costs = {"first training": trained, "updates": sum(seconds), "slowest update": max(seconds), "retraining": again}
    return {"dataset": name, **figures, "cpu seconds": costs, "updates": len(seconds), "refused": refused}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_accuracy", description=__doc__)
    parser.add_argument("--dataset", choices=FIRST_STEPS, nargs="+", default=list(FIRST_STEPS))
    parser.add_argument("--root", default="data", help="where datasets are stored")
    parser.add_argument("--visits", type=int, default=LiveSettings().visits, help="quads per fact and epoch")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.dataset:
        with TemporaryDirectory() as folder:
            settings = LiveSettings(visits=options.visits, seed=options.seed)
            print(json.dumps(compare(name, Path(folder), settings, options.root), indent=1), flush=True)


if __name__ == "__main__":
    main()
