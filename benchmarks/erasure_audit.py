"""``python -m benchmarks.erasure_audit``: what is left of entities that were erased from a live graph of WorldLeaders.

The graph is trained, updated twice, and 20 entities are erased one after the other. It is compared with graphs that
never had them, retrained from scratch with several seeds; the spread over the seeds is the tolerance.

- *bytes*: files in which a name occurs, before and after.
- *row*: questions whose answer was erased. The row has no name any more, so it is ranked by its id, among all entities.
  In a graph that never had the entity, a new row with initial values stands for it.
- *row, release 0*: the same in the oldest release, whose other rows were not learnt again.
- *answers*: the share of the first ten other answers to these questions that a graph without the entity names, too.
- *kept*: the facts that are left, ranked first among candidates of the right type.
- *re-added*: the entities are added again, each with one fact, and the graph is asked for their other facts, among
  candidates of the right type. What is left of an entity in the vectors of its neighbours would show here.
- *old vector*: the row is set to its vector from before the erasure, as someone could who kept a copy.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from benchmarks.live_accuracy import Facts, create, named_facts
from tkg_incremental import LiveGraph
from tkg_incremental.answers import AnswerEngine
from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.questions import Questions
from tkg_incremental.live.release_model import load_model
from tkg_incremental.live.timelines import whole_timeline
from tkg_incremental.ops.answers import SIDES, Side
from tkg_incremental.seeding import make_generator

Figures = dict[str, float]


class Question(NamedTuple):
    """A question whose answer was erased: names, the side that is asked for, and a step at which the fact held."""

    answer: str
    rel: str
    given: str
    side: Side
    step: int

    @property
    def triple(self) -> tuple[str, str, str]:
        ends = (self.answer, self.given) if self.side == "head" else (self.given, self.answer)
        return ends[0], self.rel, ends[1]


def choose(facts: Facts, count: int, seed: int) -> list[str]:
    """Entities with at least two facts, whose names are part of no other name: a search of bytes would find that."""
    degrees: dict[str, int] = {}
    for head, _, tail, *_ in facts:
        for name in (head, tail):
            degrees[name] = degrees.get(name, 0) + 1
    alone = [
        name for name, facts_of in degrees.items() if facts_of > 1 and sum(name in other for other in degrees) == 1
    ]
    return random.Random(seed).sample(sorted(alone), count)


def ask_for(facts: Facts, names: Sequence[str]) -> list[Question]:
    """A question for each fact of the entities, at the middle of its interval, if its other end has facts that are
    left: a graph that never had the entities must have it, too."""
    others = {name for head, _, tail, *_ in facts if head not in names and tail not in names for name in (head, tail)}
    found = []
    for head, rel, tail, first, last in facts:
        step = (first + last) // 2
        if head in names and tail in others:
            found.append(Question(head, rel, tail, "head", step))
        if tail in names and head in others:
            found.append(Question(tail, rel, head, "tail", step))
    return found


def files_with(folder: Path, names: Sequence[str]) -> int:
    """Number of (name, file) pairs such that the name occurs in the file: a plain search, not the graph's own."""
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return sum(name.encode() in content for name in names for content in contents)


def summary(ranks: Sequence[int]) -> Figures:
    return {"Hits@10": mean(rank <= 10 for rank in ranks), "rank": math.exp(mean(math.log(rank) for rank in ranks))}


def row_ranks(
    engine: AnswerEngine, questions: Sequence[Question], rows: dict[str, int], any_type: bool = True
) -> list[int]:
    """Ranks of the rows of erased entities among all entities with facts, or among those of the right type. Other known
    answers are left out; ties count as better."""
    facts, relations = engine.facts, range(engine.model.sizes["relation"] // 2)
    everything = torch.unique(torch.cat([facts.type_members(rel, side) for rel in relations for side in SIDES]))
    ranks = []
    for answer, rel_name, given_name, side, step in questions:
        given, rel, row = engine.entities.index(given_name), engine.relations.index(rel_name), rows[answer]
        answers = facts.answers(given, rel, side).items()
        known = torch.tensor([row, *(entity for entity, held in answers if any(i.covers(step) for i in held))])
        members = everything if any_type else facts.type_members(rel, side)
        others = members[~torch.isin(members, known)]
        scores = engine.scores(given, rel, side, step, torch.cat([torch.tensor([row]), others]))
        ranks.append(1 + int((scores[1:] >= scores[0]).sum()))
    return ranks


def first_answers(graph: LiveGraph, questions: Sequence[Question]) -> list[set[str]]:
    """The first ten answers by name."""
    found = []
    for question in questions:
        ends = (None, question.given) if question.side == "head" else (question.given, None)
        found.append({answer.name for answer in graph.query(ends[0], question.rel, ends[1], question.step)})
    return found


def overlap(ours: Sequence[set[str]], theirs: Sequence[set[str]]) -> float:
    return mean(len(a & b) / max(1, len(b)) for a, b in zip(ours, theirs, strict=True))


def kept(graph: LiveGraph) -> float:
    """Share of all facts, at random steps, that rank first."""
    store, clock, model = graph.folder.store, graph.clock, graph.model
    quads = (
        whole_timeline(store, clock).observed.between(0, clock.num_steps - 1).sample(2000, make_generator(0, "kept"))
    )
    return Questions(quads, store, clock, model.static_entities).share_first(model)


def with_new_rows(
    graph: LiveGraph, names: Sequence[str], seed: int, questions: Sequence[Question]
) -> tuple[AnswerEngine, Sequence[Question], dict[str, int]]:
    """Arguments of :func:`row_ranks` for a model that gets a row with initial values for each name."""
    model = load_model(graph)
    size = model.sizes["entity"]
    model.expand(size + len(names), None, None, make_generator(seed, "audit"))
    return graph.make_engine(model), questions, {name: size + i for i, name in enumerate(names)}


def re_added(graph: LiveGraph, facts: Facts, names: Sequence[str], questions: Sequence[Question]) -> Figures:
    """Adds the entities again, each with its first fact, and asks for the others by name."""
    one = {name: next(fact for fact in facts if name in (fact[0], fact[2])) for name in names}
    now, given_back = graph.clock.now, {fact[:3] for fact in one.values()}
    added = {fact[:4] for fact in one.values()}
    ended = {(*fact[:3], fact[4] + 1) for fact in one.values() if fact[4] < now}
    graph.update(added=sorted(added), ended=sorted(ended), at=now, force=True)
    rest = [question for question in questions if question.triple not in given_back]
    rows = {name: graph.engine.entities.index(name) for name in names}
    return summary(row_ranks(graph.engine, rest, rows, any_type=False))


def erased_graph(
    folder: Path, facts: Facts, names: Sequence[str], questions: Sequence[Question], settings: LiveSettings
) -> tuple[LiveGraph, dict[str, Any]]:
    """The graph after the erasures, and what is left in its files and rows."""
    last = max(fact[4] for fact in facts)
    graph, _ = create(folder, facts, last - 2, settings)
    for step in (last - 1, last):
        added = [fact[:3] for fact in facts if fact[3] == step]
        ended = [fact[:3] for fact in facts if fact[4] == step - 1]
        graph.update(added=added, ended=ended, at=step, force=True)
    rows = {name: graph.engine.entities.index(name) for name in names}
    index = torch.tensor(list(rows.values()))
    before = summary(row_ranks(graph.engine, questions, rows))
    vectors = {name: table[index].detach().clone() for name, table in graph.model.tables("entity").items()}
    files = {"before": files_with(folder, names)}
    files["found by erase"] = sum(len(graph.erase(name)) for name in names)
    graph.close()
    files["after"] = files_with(folder, names)
    graph = LiveGraph(folder)
    early = [question for question in questions if question.step <= last - 2]
    model = load_model(graph)
    with torch.no_grad():
        for name, values in vectors.items():
            model.tables()[name][index] = values
    return graph, {
        "files": files,
        "row before": before,
        "row": summary(row_ranks(graph.engine, questions, rows)),
        "row, release 0": summary(row_ranks(graph.engine_as_of(0), early, rows)),
        "old vector": summary(row_ranks(graph.make_engine(model), questions, rows)),
    }


def audit(folder: Path, facts: Facts, names: Sequence[str], seeds: int, settings: LiveSettings) -> dict[str, Any]:
    """Figures of the graph after the erasures, and of each graph that never had the entities."""
    questions, last = ask_for(facts, names), max(fact[4] for fact in facts)
    graph, erased = erased_graph(folder / "erased", facts, names, questions, settings)
    with graph:
        answers = first_answers(graph, questions)
        erased |= {"kept": kept(graph), "re-added": re_added(graph, facts, names, questions)}
    left = [fact for fact in facts if fact[0] not in names and fact[2] not in names]
    never: list[dict[str, Any]] = []
    lists: list[list[set[str]]] = []
    for seed in range(settings.seed + 1, settings.seed + 1 + seeds):
        other, _ = create(folder / f"never {seed}", left, last, replace(settings, seed=seed))
        with other:
            row = summary(row_ranks(*with_new_rows(other, names, seed, questions)))
            lists.append(first_answers(other, questions))
            never.append({"row": row, "kept": kept(other), "re-added": re_added(other, facts, names, questions)})
    erased["answers"] = mean(overlap(answers, theirs) for theirs in lists)
    for i, mine in enumerate(lists):
        never[i]["answers"] = mean(overlap(mine, theirs) for j, theirs in enumerate(lists) if i != j)
    return {"entities": list(names), "questions": len(questions), "erased": erased, "never had": never}


#: What an erasure must reach. Entities that are added again may rank better than in a graph that never had them.
REQUIRED = ("bytes", "row: Hits@10", "row: rank", "row, release 0: Hits@10", "row, release 0: rank")


def is_within(found: dict[str, Any]) -> dict[str, bool]:
    """Whether erased and re-added rows rank no better than those of graphs that never had them, by more than two
    standard deviations over the seeds."""
    within = {"bytes": found["erased"]["files"]["after"] == 0 and found["erased"]["files"]["before"] > 0}
    for name in ("row", "row, release 0", "re-added"):
        theirs = [figures[name.split(",")[0]] for figures in found["never had"]]
        hits, ranks = ([figures[key] for figures in theirs] for key in ("Hits@10", "rank"))
        mine = found["erased"][name]
        within[f"{name}: Hits@10"] = mine["Hits@10"] <= mean(hits) + 2 * stdev(hits)
        within[f"{name}: rank"] = mine["rank"] >= mean(ranks) - 2 * stdev(ranks)
    return within


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.erasure_audit", description=__doc__)
    parser.add_argument("--entities", type=int, default=20, help="number of entities to erase")
    parser.add_argument("--seeds", type=int, default=3, help="number of graphs that never had them, at least 2")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    facts = named_facts(WorldLeaders())
    with TemporaryDirectory() as folder:
        names = choose(facts, options.entities, options.seed)
        found = audit(Path(folder), facts, names, options.seeds, LiveSettings(seed=options.seed))
    found["within the tolerance"] = is_within(found)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    sys.exit(not all(found["within the tolerance"][name] for name in REQUIRED))


if __name__ == "__main__":
    main()
