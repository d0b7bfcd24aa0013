"""The gate: neighbours against plain Python, and the verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tkg_incremental import LiveGraph
from tkg_incremental.live.gate import (
    GateReport,
    GateSettings,
    judge,
    neighbour_overlap,
    neighbours,
)

GOOD = GateReport(learned=1.0, kept=0.99, kept_before=1.0, outranked=1.0, drift=0.9, finite=True)


@pytest.fixture(scope="module")
def graph(trained: Path) -> LiveGraph:
    return LiveGraph(trained)


def test_neighbours(graph: LiveGraph) -> None:
    some, others = torch.tensor([0, 3]), torch.arange(graph.model.sizes["entity"])
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
    assert math.isnan(neighbour_overlap(found, graph.model, some, others[:2], k=2))


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


def test_thresholds_are_not_rounded() -> None:
    verdict = judge(GOOD, GateSettings(drift=0.999))
    assert verdict.reasons == ("nearest neighbours overlap by 90.0% (expected at least 99.9%)",)


def test_settings() -> None:
    assert GateSettings.from_table({"learned": 0.5}) == GateSettings(learned=0.5)
    with pytest.raises(ValueError, match="has no option 'learnd'"):
        GateSettings.from_table({"learnd": 0.5})
    assert replace(GOOD, drift=math.nan).to_dict()["drift"] is None
