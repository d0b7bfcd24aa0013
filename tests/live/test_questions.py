"""Ranks of the gate's questions against plain Python."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tkg_incremental import LiveGraph
from tkg_incremental.live import questions
from tkg_incremental.live.known import StoreFacts
from tkg_incremental.live.questions import Questions


@pytest.fixture(scope="module")
def graph(trained: Path) -> LiveGraph:
    return LiveGraph(trained)


def ask(graph: LiveGraph, quads: Tensor) -> Questions:
    return Questions(quads, graph.folder.store, graph.clock, graph.model.static_entities)


def quads_of(graph: LiveGraph) -> Tensor:
    """Every fact at its first and at its last step."""
    clock, rows = graph.clock, set()
    facts = graph.folder.store.facts_arrays()
    for head, rel, tail, start, stop in zip(*(c.tolist() for c in facts[1:]), strict=True):
        rows |= {(head, rel, tail, clock.step(start)), (head, rel, tail, clock.step(stop - 1))}
    return torch.tensor(sorted(rows))


def scores_of(graph: LiveGraph, quad: list[int], side: str) -> dict[int, float]:
    """Scores of the candidates of the right type and of the quad's own answer, one at a time."""
    head, rel, tail, step = quad
    facts = StoreFacts(graph.folder.store, graph.clock)
    members = {*facts.type_members(rel, side).tolist(), head if side == "head" else tail}  # type: ignore[arg-type]
    found = {}
    for entity in members:
        one = torch.tensor([[entity, rel, tail, step] if side == "head" else [head, rel, entity, step]])
        vectors = graph.model.candidate_vectors(torch.tensor([entity]), step)
        found[entity] = float(graph.model.score_all(one, side, vectors)[0, 0])  # type: ignore[arg-type]
    return found


def known_of(graph: LiveGraph, quad: list[int], side: str) -> set[int]:
    head, rel, tail, step = quad
    at, arrays = graph.clock.origin + step, graph.folder.store.facts_arrays()
    facts = zip(*(column.tolist() for column in arrays[1:]), strict=True)
    return {
        h if side == "head" else t
        for h, r, t, start, stop in facts
        if r == rel and start <= at < stop and (t == tail if side == "head" else h == head)
    }


@torch.no_grad()
def test_ranks(graph: LiveGraph) -> None:
    quads, expected = quads_of(graph), []
    for side in ("tail", "head"):
        for quad in quads.tolist():
            scores, known = scores_of(graph, quad, side), known_of(graph, quad, side)
            own = scores[quad[0 if side == "head" else 2]]
            expected.append(1 + sum(score > own + 1e-6 for entity, score in scores.items() if entity not in known))
    assert ask(graph, quads).ranks(graph.model).tolist() == expected
    assert ask(graph, quads).share_first(graph.model) == pytest.approx(
        sum(rank == 1 for rank in expected) / len(expected)
    )


@torch.no_grad()
def test_outranked(graph: LiveGraph) -> None:
    # "person 1" led R&D before; none of the others ever led anything.
    store, now = graph.folder.store, graph.clock.num_steps - 1
    leads, sales = store.relations.find("leads"), store.entities.find("R&D")
    names = [f"person {i}" for i in range(1, 6)]
    quads = torch.tensor([[store.entities.find(name), leads, sales, now] for name in names])
    expected = []
    for quad in quads.tolist():
        for side in ("tail", "head"):
            scores, known = scores_of(graph, quad, side), known_of(graph, quad, side)
            own = scores[quad[0 if side == "head" else 2]]
            if known:
                expected.append(own < min(scores[entity] for entity in known))
            else:
                expected.append(len(scores) <= 10 or sum(score > own for score in scores.values()) >= 10)
    assert ask(graph, quads).share_outranked(graph.model) == pytest.approx(sum(expected) / len(expected))


def test_the_mode_of_the_model_stays(graph: LiveGraph) -> None:
    asked = ask(graph, quads_of(graph))
    for mode in (True, False):
        asked.ranks(graph.model.train(mode))
        assert graph.model.training == mode


def test_nothing_to_measure(graph: LiveGraph) -> None:
    nothing = torch.empty(0, 4, dtype=torch.long)
    assert math.isnan(ask(graph, nothing).share_first(graph.model))
    assert math.isnan(ask(graph, nothing).share_outranked(graph.model))
    assert len(ask(graph, nothing).ranks(graph.model)) == 0


def test_large_types_are_sampled(graph: LiveGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    quads = quads_of(graph)
    exact = ask(graph, quads).ranks(graph.model)
    monkeypatch.setattr(questions, "MAX_CANDIDATES", 3)
    sampled = ask(graph, quads).ranks(graph.model)
    assert (sampled <= exact).all()
    assert sampled.equal(ask(graph, quads).ranks(graph.model))  # always the same candidates


def test_scores_in_parts_are_the_same(graph: LiveGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    quads = quads_of(graph)
    whole = ask(graph, quads).ranks(graph.model)
    monkeypatch.setattr(questions, "MAX_SCORES", 1)
    assert ask(graph, quads).ranks(graph.model).equal(whole)


def test_numbers_that_are_not_finite_rank_last(path: Path) -> None:
    with LiveGraph(path) as graph:
        quads = quads_of(graph)
        with torch.no_grad():
            for table in graph.model.tables("relation").values():
                table.fill_(torch.nan)
        assert ask(graph, quads).share_first(graph.model) == 0


def test_one_look_up_serves_several_models(graph: LiveGraph, tmp_path: Path) -> None:
    quads = quads_of(graph)
    prepared, before = ask(graph, quads), ask(graph, quads).ranks(graph.model)
    other = graph.settings.make_model(*(graph.model.sizes[axis] for axis in ("entity", "relation", "time")))
    assert not prepared.ranks(other).equal(before)
    assert prepared.ranks(graph.model).equal(before)
