"""The gate against plain Python: ranks, outranked facts, neighbours, and the verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_live import make
from torch import Tensor

from tkg_incremental import LiveGraph
from tkg_incremental.live import gate
from tkg_incremental.live.gate import (
    GateReport,
    GateSettings,
    judge,
    neighbour_overlap,
    neighbours,
    share_first,
    share_outranked,
    type_ranks,
)

GOOD = GateReport(learned=1.0, kept=0.99, kept_before=1.0, outranked=1.0, drift=0.9, finite=True)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> LiveGraph:
    return make(tmp_path_factory.mktemp("gate"))


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
    members = set(graph.folder.store.type_members(rel, side).tolist()) | {head if side == "head" else tail}
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
    assert type_ranks(graph.engine, quads).tolist() == expected
    assert share_first(graph.engine, quads) == pytest.approx(sum(rank == 1 for rank in expected) / len(expected))


@torch.no_grad()
def test_outranked(graph: LiveGraph) -> None:
    # "person 1" led R&D before; nobody else of them ever led anything.
    store, now = graph.folder.store, graph.clock.num_steps - 1
    leads, sales = store.relation_id("leads"), store.entity_id("R&D")
    names = [f"person {i}" for i in range(1, 6)]
    quads = torch.tensor([[store.entity_id(name), leads, sales, now] for name in names])
    expected = []
    for quad in quads.tolist():
        for side in ("tail", "head"):
            scores, known = scores_of(graph, quad, side), known_of(graph, quad, side)
            own = scores[quad[0 if side == "head" else 2]]
            if known:
                expected.append(own < min(scores[entity] for entity in known))
            else:
                expected.append(len(scores) <= 10 or sum(score > own for score in scores.values()) >= 10)
    assert share_outranked(graph.engine, quads) == pytest.approx(sum(expected) / len(expected))


def test_nothing_to_measure(graph: LiveGraph) -> None:
    nothing = torch.empty(0, 4, dtype=torch.long)
    assert math.isnan(share_first(graph.engine, nothing))
    assert math.isnan(share_outranked(graph.engine, nothing))
    assert len(type_ranks(graph.engine, nothing)) == 0
    assert math.isnan(neighbour_overlap(nothing, graph.model, torch.arange(2), torch.arange(3)))


def test_large_types_are_sampled(graph: LiveGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    quads = quads_of(graph)
    exact = type_ranks(graph.engine, quads)
    monkeypatch.setattr(gate, "MAX_CANDIDATES", 3)
    sampled = type_ranks(graph.engine, quads)
    assert (sampled <= exact).all()
    assert sampled.equal(type_ranks(graph.engine, quads))  # always the same candidates


def test_scores_in_parts_are_the_same(graph: LiveGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    quads = quads_of(graph)
    whole = type_ranks(graph.engine, quads)
    monkeypatch.setattr(gate, "MAX_SCORES", 1)
    assert type_ranks(graph.engine, quads).equal(whole)


def test_numbers_that_are_not_finite_rank_last(tmp_path: Path) -> None:
    with make(tmp_path) as graph:
        quads = quads_of(graph)
        with torch.no_grad():
            for table in graph.model.encoder.tables("relation").values():
                table.fill_(torch.nan)
        assert share_first(graph.engine, quads) == 0


def test_neighbours(graph: LiveGraph) -> None:
    some, others = torch.tensor([0, 3]), torch.arange(graph.model.encoder.sizes["entity"])
    found = neighbours(graph.model, some, others, k=2)
    with torch.no_grad():
        vectors = graph.model.candidate_vectors(others, 0).tolist()

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    for entity, near in zip(some.tolist(), found.tolist(), strict=True):
        order = sorted((o for o in others.tolist() if o != entity), key=lambda o: -cosine(vectors[entity], vectors[o]))
        assert near == order[:2]
    assert neighbour_overlap(found, graph.model, some, others, k=2) == 1.0
    assert neighbour_overlap(found.flip(0), graph.model, some, others, k=2) <= 1.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"learned": math.nan, "kept": math.nan, "outranked": math.nan, "drift": math.nan}, None),
        ({"finite": False}, "some parameters are not finite"),
        ({"learned": 0.89}, "learned 89.0% of the added facts (expected at least 90%)"),
        ({"kept": 0.97}, "kept 97.0% of older facts, 100.0% before (at most 2% less)"),
        ({"outranked": 0.5}, "outranked 50.0% of the ended facts (expected 90%)"),
        ({"drift": 0.1}, "nearest neighbours overlap by 10.0% (expected at least 20%)"),
    ],
)
def test_verdict(change: dict[str, float], reason: str | None) -> None:
    verdict = judge(replace(GOOD, **change), GateSettings())  # type: ignore[arg-type]
    assert verdict.passed == (reason is None)
    assert verdict.reasons == (() if reason is None else (reason,))


def test_settings() -> None:
    assert GateSettings.from_table({"learned": 0.5}) == GateSettings(learned=0.5)
    with pytest.raises(ValueError, match="has no option 'learnd'"):
        GateSettings.from_table({"learnd": 0.5})
    assert replace(GOOD, drift=math.nan).to_dict()["drift"] is None
