"""The candidates of a batch as the oracles take them, and the losses from them by plain autograd."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from oracles import Draw, TimelineOracle, with_answer
from timelines import to_tensor
from torch import Tensor

from tkg_incremental.loader import TermBatch
from tkg_incremental.models import TKGModel
from tkg_incremental.ops.answers import SIDES


def draws_of(term: TermBatch) -> list[Draw]:
    """For each query, the candidates that count."""
    drawn = term.candidates
    assert drawn is not None
    lists = drawn.entities if drawn.list_of_query is None else drawn.entities[drawn.list_of_query]
    mask = torch.zeros_like(lists, dtype=torch.bool)
    if drawn.mask is not None:
        mask |= drawn.mask
    queries = [(tuple(quad), side) for side in SIDES for quad in term.quads.tolist()]
    return [
        Draw(quad, side, entities[counts].tolist())
        for (quad, side), entities, counts in zip(queries, lists, ~mask, strict=True)
    ]


def all_draws(line: TimelineOracle, quads: Iterable[tuple[int, int, int, int]]) -> list[Draw]:
    """For each query, all entities known at its time that are no true answer."""
    return [
        Draw(quad, side, sorted(line.known_entities(quad[3]) - line.answers(side, "train", quad)))
        for quad in quads
        for side in SIDES
    ]


def plain_logits(model: TKGModel, draw: Draw) -> Tensor:
    """Scores of the true answer and of the candidates, by the model's own forward."""
    quads = [draw.row, *(with_answer(draw.row, draw.side, entity) for entity in draw.negatives)]
    return model(to_tensor(quads))


def plain_cross_entropy(model: TKGModel, draws: list[Draw]) -> Tensor:
    """Mean over the quads of the cross-entropy of both queries."""
    parts = [-plain_logits(model, draw).log_softmax(0)[0] for draw in draws]
    return torch.stack(parts).sum() / (len(draws) / 2)


def plain_distillation(previous: TKGModel, model: TKGModel, draws: list[Draw]) -> Tensor:
    """Mean over the quads of the divergence of both queries."""
    total = torch.zeros((), dtype=torch.double)
    for draw in draws:
        p, q = plain_logits(previous, draw).detach().log_softmax(0), plain_logits(model, draw).log_softmax(0)
        total = total + (p.exp() * (p - q)).sum()
    return total / (len(draws) / 2)


def assert_same_gradients(model: TKGModel, found: Tensor, wanted: Tensor) -> None:
    """Whether two losses have the same gradient by every table."""
    tables = list(model.parameters())
    nothing = sum((0 * table).sum() for table in tables)  # a loss without queries has no graph
    mine, theirs = (
        torch.autograd.grad(loss + nothing, tables, retain_graph=True, materialize_grads=True)
        for loss in (found, wanted)
    )
    for gradient, want in zip(mine, theirs, strict=True):
        torch.testing.assert_close(gradient.to_dense(), want.to_dense(), rtol=1e-9, atol=1e-9)
