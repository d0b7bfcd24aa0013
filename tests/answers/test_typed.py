"""Ranks among candidates of the right type, against plain Python."""

from __future__ import annotations

import math

import pytest
import torch

from tkg_incremental.answers import type_constrained, typed_ranks
from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE


@pytest.mark.parametrize("any_type", [False, True])
def test_ranks(any_type: bool) -> None:
    dataset = SyntheticTKG(num_entities=25, num_relations=3, num_steps=6, facts_per_step=20, test=0.5)
    timeline, model = dataset.timeline, DE.from_dataset(dataset, hidden_channels=8)
    truth = set(map(tuple, timeline.truth.quads().tolist()))
    train = timeline.observed.facts.tolist()
    quads, expected = timeline.test.quads(), []
    for head, rel, tail, step in quads.tolist():
        for side, answer in (("tail", tail), ("head", head)):
            column = 2 if side == "tail" else 0
            members = timeline.known_entities(step).tolist() if any_type else [f[column] for f in train if f[1] == rel]
            members = sorted(set(members))
            quad = torch.tensor([[head, rel, tail, step]])
            with torch.no_grad():
                row = model.score_all(quad, side, model.candidate_vectors(torch.tensor(members), step))[0]
            scores = dict(zip(members, row.tolist(), strict=True))
            if answer not in scores:
                expected.append(math.inf)
                continue
            others = [
                score
                for e, score in scores.items()
                if ((head, rel, e, step) if side == "tail" else (e, rel, tail, step)) not in truth
            ]
            expected.append(1 + sum(s > scores[answer] for s in others) + sum(s == scores[answer] for s in others) / 2)
    ranks = typed_ranks(model, timeline, quads, timeline.num_steps - 1, any_type)
    assert sorted(ranks.tolist()) == sorted(expected)
    found = type_constrained(model, timeline, "test", timeline.num_steps - 1)
    mrr = 100 * sum(1 / rank for rank in expected) / len(expected)
    assert found["all" if any_type else "typed"]["MRR"] == pytest.approx(mrr, rel=1e-5)


def test_a_model_in_training_is_ranked_without_dropout() -> None:
    dataset = SyntheticTKG(num_entities=25, num_relations=3, num_steps=6, facts_per_step=20, test=0.5)
    model = DE.from_dataset(dataset, hidden_channels=8, dropout=0.5)
    quads = dataset.timeline.test.quads()
    expected = typed_ranks(model.eval(), dataset.timeline, quads, 5)
    assert typed_ranks(model.train(), dataset.timeline, quads, 5).equal(expected)
    assert model.training


def test_without_quads() -> None:
    dataset = SyntheticTKG(num_entities=25, num_steps=6, test=0.0)
    model = DE.from_dataset(dataset, hidden_channels=8)
    assert type_constrained(model, dataset.timeline, "test", 5) == {}
