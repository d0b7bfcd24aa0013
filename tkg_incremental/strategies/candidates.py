"""True entities against their negatives, in the ways negatives can be had: each row its own, a sample that rows
of one time share, or all known entities."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import SIDES, TIME
from tkg_incremental.ops.one_vs_all import one_vs_all_loss
from tkg_incremental.strategies.step import Step

Negatives = int | Literal["all"]


def link_loss(step: Step, rows: Tensor, negatives: Negatives, shared: bool = False) -> Tensor:
    """Softmax cross-entropy, tail side + head side, mean over the rows.

    Args:
        step: The step of learning.
        rows: ``[B, 4]``.
        negatives: How many a side, or ``"all"`` known entities that are no true answer.
        shared: Rows of one time share their negatives, instead of drawing each its own.
    """
    if negatives == "all" or shared:
        return _grouped_loss(step, rows, None if negatives == "all" else negatives)
    rows = by_time(rows)
    logits = sampled_logits(step.model, step, rows, *draw(step, rows, negatives))
    true = torch.zeros(len(logits), dtype=torch.long, device=rows.device)
    return F.cross_entropy(logits, true, reduction="sum") / len(rows)


def by_time(rows: Tensor) -> Tensor:
    """Rows of a batch in the order of time, so that those next to each other meet the same candidates."""
    return rows[torch.argsort(rows[:, TIME], stable=True)]


def draw(step: Step, rows: Tensor, negatives: int) -> tuple[Tensor, Tensor]:
    """Columns of negatives ``[2B, negatives]``, for tails then for heads, and ``[2B]`` whether a row has any."""
    sides = [step.negatives(rows, side, negatives, step.generator) for side in SIDES]
    available = torch.cat([there for _, there in sides])
    return torch.cat([columns for columns, _ in sides]) * available[:, None], available


def sampled_logits(model: TKGModel, step: Step, rows: Tensor, columns: Tensor, available: Tensor) -> Tensor:
    """Scores ``[2B, 1 + negatives]``, the true entity first; a row without negatives keeps that alone."""
    query, true = model.both_queries(rows)
    scores = model.score_sampled(query, columns, rows[:, TIME].repeat(2), step.timeline.order)
    return torch.cat([true[:, None], scores.masked_fill(~available[:, None], -torch.inf)], dim=1)


def _grouped_loss(step: Step, rows: Tensor, count: int | None) -> Tensor:
    """Rows of one time against one table of candidates: all known entities, or ``count`` of them."""
    model, line = step.model, step.timeline
    rows = by_time(rows)
    steps, group_sizes = torch.unique_consecutive(rows[:, TIME], return_counts=True)
    known = line.num_known[steps]
    width = int(known.max())
    if count is None or count >= width:
        columns = torch.arange(width, device=rows.device)
        table = model.encoder.grid(line.order[columns], steps)
    else:
        # A sample for each step; steps with fewer entities than asked for repeat some.
        draws = torch.rand(len(steps), count, generator=step.generator, device=rows.device, dtype=torch.double)
        columns = (draws * known[:, None]).long()
        table = model.encoder.entity(line.order[columns], steps[:, None])
        known = torch.full_like(known, count)
    query, true = model.both_queries(rows)
    loss = one_vs_all_loss(
        query.view(2, len(rows), -1),
        table,
        true.view(2, -1),
        group_sizes.tolist(),
        known.tolist(),
        _true_answers(step, rows, columns, group_sizes),
        model.decoder.similarity,
    )
    return loss / len(rows)


def _true_answers(step: Step, rows: Tensor, columns: Tensor, group_sizes: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For tails, then for heads: (row, place among its candidates) of every true answer that is a candidate."""
    found = []
    for side in SIDES:
        answers = step.timeline.answers(side, "train")
        row, column = answers.expand(answers.lookup(rows))
        if columns.dim() == 2:
            group = torch.repeat_interleave(torch.arange(len(columns), device=rows.device), group_sizes)
            # A column may have been drawn twice: compare with all of them, a few answers at a time.
            hits = [
                (part + start, place)
                for start in range(0, len(row), 4096)
                for part, place in [_matches(columns[group[row[start : start + 4096]]], column[start : start + 4096])]
            ]
            at = torch.cat([part for part, _ in hits]) if hits else row[:0]
            column = torch.cat([place for _, place in hits]) if hits else row[:0]
            row = row[at]
        found.append((row, column))
    return found


def _matches(candidates: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    which, place = (candidates == column[:, None]).nonzero(as_tuple=True)
    return which, place
