"""Cross-entropy of true entities against their negatives, in the three ways negatives can be had."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import SIDES, TIME, Side, query_columns
from tkg_incremental.ops.one_vs_all import one_vs_all_loss
from tkg_incremental.ops.scores import compare
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
    loss = rows.new_zeros((), dtype=torch.float)
    for side in SIDES:
        logits = sampled_logits(step.model, step, rows, side, *draw(step, rows, side, negatives))
        loss = loss + F.cross_entropy(logits, torch.zeros(len(rows), dtype=torch.long, device=rows.device))
    return loss


def draw(step: Step, rows: Tensor, side: Side, negatives: int) -> tuple[Tensor, Tensor]:
    """Columns ``[B, 1 + negatives]``, the true answer first, and ``[B]`` whether there are negatives at all."""
    columns, available = step.negatives(rows, side, negatives, step.generator)
    true = step.timeline.column_of[rows[:, query_columns(side)[1]]]
    return torch.cat([true[:, None], columns * available[:, None]], dim=1), available


def sampled_logits(
    model: TKGModel, step: Step, rows: Tensor, side: Side, columns: Tensor, available: Tensor
) -> Tensor:
    """Scores ``[B, 1 + negatives]``; a row without negatives keeps its true answer alone."""
    scores = model.score_sampled(rows, side, columns, step.timeline.order)
    absent = ~available[:, None] & (torch.arange(columns.size(1), device=rows.device) > 0)
    return scores.masked_fill(absent, -torch.inf)


def _grouped_loss(step: Step, rows: Tensor, count: int | None) -> Tensor:
    """Rows of one time against one table of candidates: all known entities, or a sample they share."""
    model, line = step.model, step.timeline
    loss = rows.new_zeros((), dtype=torch.float)
    for time in torch.unique(rows[:, TIME]).tolist():
        group = rows[rows[:, TIME] == time]
        known = int(line.num_known[time])
        columns = torch.arange(known, device=rows.device)
        if count is not None and count < known:
            columns = torch.randperm(known, generator=step.generator, device=rows.device)[:count].sort().values
        table = model.candidate_vectors(line.order[columns], time)
        for side in SIDES:
            query = model.query_vectors(group, side)
            true = model.encoder.entity(group[:, query_columns(side)[1]], group[:, TIME])
            positive = compare(query, true, model.decoder.similarity)
            answers = line.answers(side, "train")
            row, column = answers.expand(answers.lookup(group))
            place = torch.searchsorted(columns, column).clamp_(max=len(columns) - 1)
            inside = columns[place] == column
            mask = (row[inside], place[inside])
            loss = loss + one_vs_all_loss(query, table, positive, mask, model.decoder.similarity).sum()
    return loss / len(rows)
