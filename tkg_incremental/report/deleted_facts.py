"""Deleted facts that a model still ranks among the first ten answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import HEAD, LAST, REL, SIDES, TAIL, TIME, Side, query_columns
from tkg_incremental.report.changes import DeletedRecord, RankedDeletedFact
from tkg_incremental.report.watch import raw_ranks

TOP = 10


def rank_deleted(
    model: TKGModel,
    timeline: Timeline,
    time: int,
    window: int,
    candidates: Tensor,
    names: tuple[Sequence[str], Sequence[str]],
    max_scores: int,
    count: int,
) -> DeletedRecord:
    """Ranks both sides of the deleted facts of a step, by the model after it, and names those among the first ten
    answers.

    Args:
        model: The model.
        timeline: The graph.
        time: The step.
        window: Number of steps that deleted facts reach back.
        candidates: ``[m, d]`` vectors of the entities known at the step.
        names: Names of the entities and of the relations.
        max_scores: Maximum number of scores; more deleted facts are sampled.
        count: Maximum number of named facts.
    """
    deleted = timeline.truth.deleted(time, window)
    room = max(1, max_scores // (len(SIDES) * len(candidates)))
    if len(deleted) > room:  # not with the run's own generator: recording must not change the run
        order = torch.randperm(len(deleted), generator=torch.Generator().manual_seed(time))
        deleted = deleted[order[:room].to(deleted.device)]
    found = 0
    named: list[RankedDeletedFact] = []
    for side in SIDES if len(deleted) else ():
        scores = model.score_all(deleted, side, candidates)
        ranks = raw_ranks(scores, timeline.column_of[deleted[:, query_columns(side)[1]]])
        top = ranks <= TOP
        found += int(top.sum())
        named += _name(timeline, window, deleted[top], side, scores[top], ranks[top], names, count)
    # Clear mistakes first: another answer is true now, and ranks lower.
    named.sort(key=lambda f: (f.now is None, f.now_rank is not None and f.now_rank < f.rank, f.rank))
    return DeletedRecord(time, len(SIDES) * len(deleted), found, named[:count])


def _name(
    timeline: Timeline,
    window: int,
    quads: Tensor,
    side: Side,
    scores: Tensor,
    ranks: Tensor,
    names: tuple[Sequence[str], Sequence[str]],
    count: int,
) -> list[RankedDeletedFact]:
    """Deleted facts by name, with the best ranked answers that are true now: at most ``count``, the worst first."""
    entities, relations = names
    index = timeline.answers(side, "all")
    # Facts with another answer now, then by rank: close to the order of the record, which needs the ranks of answers.
    best = torch.argsort(ranks + ~index.has_answers(quads) * TOP, stable=True)[:count]
    quads, scores = quads[best], scores[best]
    owner, answers = index.expand(quads)
    facts = []
    for i, (quad, rank) in enumerate(zip(quads, ranks[best].tolist(), strict=True)):
        head, rel, tail = quad[[HEAD, REL, TAIL]].tolist()
        fact = RankedDeletedFact(
            entities[head], relations[rel], entities[tail], side, rank, _last_true(timeline, window, quad)
        )
        current = answers[owner == i]
        if len(current):
            columns = timeline.column_of[current]
            place = int(scores[i, columns].argmax())
            fact.now = entities[int(current[place])]
            fact.now_rank = float(raw_ranks(scores[i : i + 1], columns[place : place + 1]))
        facts.append(fact)
    return facts


def _last_true(timeline: Timeline, window: int, quad: Tensor) -> int:
    """The last step before the quad's at which its triple held."""
    time = int(quad[TIME])
    before = timeline.truth.between(time - window, time - 1).facts
    return int(before[(before[:, :TIME] == quad[:TIME]).all(1), LAST].max())
