"""True entities against their negatives, in the ways negatives can be had: each row its own, a sample that rows
of one time share, or all known entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import REL, SIDES, TIME
from tkg_incremental.ops.keys import expand_spans
from tkg_incremental.ops.one_vs_all import one_vs_all_loss
from tkg_incremental.ops.rows import with_rows
from tkg_incremental.ops.scores import compare
from tkg_incremental.sampling import Pool
from tkg_incremental.strategies.encoding import ends_of
from tkg_incremental.strategies.step import Step

Negatives = int | Literal["all"]


@dataclass
class Sample:
    """Entities that a batch is held against, for tails then for heads.

    Args:
        columns: ``[2B, K]`` those of each row, or ``[R, K]`` lists of them, as places in the order of the pool.
        time: ``[2B]`` or ``[R]`` the step of each of these.
        list_of_row: ``[2B]`` the list each row uses, or :obj:`None` if each has its own.
        absent: ``[2B, K]`` or ``[2B, 1]`` which of them are none: true answers, or there are none to draw;
            :obj:`None` if all are there.
        pool: Whom they were drawn from.
    """

    columns: Tensor
    time: Tensor
    list_of_row: Tensor | None
    absent: Tensor | None
    pool: Pool


def link_loss(step: Step, rows: Tensor, negatives: Negatives, shared: bool = False) -> Tensor:
    """Softmax cross-entropy, tail side + head side, mean over the rows.

    Args:
        step: The step of learning.
        rows: ``[B, 4]``.
        negatives: How many a side, or ``"all"`` known entities that are no true answer.
        shared: Rows of one time share their negatives, instead of drawing each its own.
    """
    rows = by_time(rows)
    if negatives == "all":
        return _all_known_loss(step, rows)
    return sampled_loss(step, rows, draw(step, rows, negatives, shared))


def sampled_loss(step: Step, rows: Tensor, sample: Sample) -> Tensor:
    """As :func:`link_loss`, against negatives that have been drawn."""
    logits = sampled_logits(step.model, step, rows, sample)
    true = torch.zeros(len(logits), dtype=torch.long, device=rows.device)
    return F.cross_entropy(logits, true, reduction="sum") / len(rows)


def by_time(rows: Tensor) -> Tensor:
    """Rows of a batch in the order of time, so that those next to each other meet the same candidates."""
    return rows[torch.argsort(rows[:, TIME], stable=True)]


def draw(step: Step, rows: Tensor, negatives: int, shared: bool = False) -> Sample:
    """Draws the negatives of a batch."""
    if shared:
        return _draw_shared(step, rows, negatives)
    columns = rows.new_empty(2 * len(rows), negatives)
    are_there = [
        step.negatives(rows, side, negatives, step.generator, step.share, out=half)[1]
        for side, half in zip(SIDES, columns.split(len(rows)), strict=True)
    ]
    absent = None
    if any(there is not None for there in are_there):
        absent = torch.cat([columns.new_zeros(len(rows)) if there is None else ~there for there in are_there]).bool()
        absent = absent[:, None]
        columns.masked_fill_(absent, 0)
    return Sample(columns, rows[:, TIME].repeat(2), None, absent, step.negatives.pool)


def _draw_shared(step: Step, rows: Tensor, negatives: int) -> Sample:
    """One list for all rows of a time; a row's true answers in it do not count for that row."""
    pool = step.negatives.pool
    steps, list_of_row = torch.unique(rows[:, TIME], return_inverse=True)
    columns = step.share.by_step(
        steps,
        lambda n: torch.empty(n, negatives, dtype=torch.long, device=rows.device).random_(generator=step.generator),
    )
    columns %= pool.num_known[steps].clamp(min=1)[:, None]
    return from_lists(step.timeline, rows, columns, steps, list_of_row, pool)


def from_lists(
    timeline: Timeline, rows: Tensor, columns: Tensor, time: Tensor, list_of_row: Tensor, pool: Pool
) -> Sample:
    """Lists that rows share as their negatives; a row's true answers in its list do not count for that row.

    Args:
        timeline: The graph.
        rows: ``[B, 4]``.
        columns: ``[R, K]`` the lists, as places in the order of the pool.
        time: ``[R]`` the step of each list.
        list_of_row: ``[B]`` the list each row uses.
        pool: Whom they are of.
    """
    absent = (pool.num_known[rows[:, TIME]] == 0).repeat(2)[:, None].repeat(1, columns.size(1))
    members, length = len(pool.order), columns.size(1)
    listed, place = torch.sort((members * torch.arange(len(columns), device=rows.device)[:, None] + columns).flatten())
    for i, side in enumerate(SIDES):
        answers = timeline.answers(side, "train")
        row, column = answers.expand(answers.lookup(rows))
        inside, column = pool.among(column)
        row, wanted = row[inside], members * list_of_row[row[inside]] + column
        first = torch.searchsorted(listed, wanted)
        which, found = expand_spans(first, torch.searchsorted(listed, wanted, right=True) - first)
        absent[i * len(rows) + row[which], place[found] % length] = True
    return Sample(columns, time, list_of_row.repeat(2), absent, pool)


def sampled_logits(model: TKGModel, step: Step, rows: Tensor, sample: Sample) -> Tensor:
    """Scores ``[2B, 1 + K]``, the true entity first, and minus infinity for what is absent."""
    (head, tail), table, drawn = step.encode(model, rows, sample.columns, sample.time, sample.pool)
    query = model.both_queries(head, model.encoder.relation(rows[:, REL], rows[:, TIME]), tail)
    true = compare(query, torch.cat([tail, head]), model.decoder.similarity)
    if sample.list_of_row is not None:
        drawn = drawn.lists(sample.list_of_row)
    scores = table.sampled_scores(query, drawn, model.decoder.similarity)
    if sample.absent is not None:
        scores = scores.masked_fill(sample.absent, -torch.inf)
    return torch.cat([true[:, None], scores], dim=1)


def _all_known_loss(step: Step, rows: Tensor) -> Tensor:
    """Rows of one time against all entities known then, as one product."""
    model, line = step.model, step.timeline
    time = rows[:, TIME]
    steps, group, group_sizes = torch.unique_consecutive(time, return_inverse=True, return_counts=True)
    known = line.num_known[steps]
    first = known.cumsum(0) - known
    # Asked for together: each answer to the host is a wait for the device.
    at, widths, sizes = torch.stack([steps, known, group_sizes]).tolist()
    table, vectors = with_rows(model.encoder.known(line.order, at, widths), first[group][:, None] + ends_of(line, rows))
    head, tail = vectors.unbind(1)
    query = model.both_queries(head, model.encoder.relation(rows[:, REL], time), tail)
    true = compare(query, torch.cat([tail, head]), model.decoder.similarity)
    true_answers = [line.answers(side, "train") for side in SIDES]
    loss = one_vs_all_loss(
        query.view(2, len(rows), -1),
        table,
        true.view(2, -1),
        sizes,
        widths,
        [answers.expand(answers.lookup(rows)) for answers in true_answers],
        model.decoder.similarity,
    )
    return loss / len(rows)
