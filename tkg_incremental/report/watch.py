"""Ranks of the answers of some questions through a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import REL, TIME
from tkg_incremental.report.changes import Handover, Question, WatchedAnswer
from tkg_incremental.report.handovers import MAX_GAP, QuestionIds

# Maximum number of answers per question: the latest ones.
_MAX_ANSWERS = 12
# Number of first answers that are recorded by name.
_FIRST = 3


def raw_ranks(scores: Tensor, columns: Tensor) -> Tensor:
    """Raw ranks of one candidate per query, ``[n, m], [n] → [n]``; ties have the mean of the best and the worst rank.

    >>> raw_ranks(torch.tensor([[0.5, 0.9, 0.5]]), torch.tensor([0]))
    tensor([2.5000])
    """
    own = scores.gather(1, columns[:, None])
    return 1 + (scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2


def watch_question(
    timeline: Timeline, ids: QuestionIds, handovers: Tensor, entities: Sequence[str], relations: Sequence[str]
) -> tuple[Question, Tensor]:
    """A question with its answers at the incremental steps, which have no ranks yet, and the ids of the answers.

    Args:
        timeline: The graph.
        ids: The question.
        handovers: ``[H, 5]`` the handovers of its side.
        entities: Names of the entities.
        relations: Names of the relations.
    """
    side, given, rel = ids
    holds, learnt = _holds(timeline, ids, "all"), _holds(timeline, ids, "train")
    # The outgoing answer of a handover at the first step need not hold at any incremental one.
    latest = sorted(holds, key=lambda entity: (holds[entity], entity))[-_MAX_ANSWERS:]
    answers = [
        WatchedAnswer(
            entities[entity], [step for step in holds[entity] if step >= timeline.base_step], entity in learnt
        )
        for entity in latest
    ]
    place = {entity: i for i, entity in enumerate(latest)}
    mine = handovers[(handovers[:, 0] == given) & (handovers[:, 1] == rel), 2:].tolist()
    changes = [Handover(time, place[old], place[new]) for old, new, time in mine if old in place and new in place]
    question = Question(side, relations[rel], entities[given], answers, changes)
    return question, torch.tensor(latest, dtype=torch.long, device=timeline.device)


def _holds(timeline: Timeline, ids: QuestionIds, which: Literal["train", "all"]) -> dict[int, list[int]]:
    """The steps at which each answer holds, from a few steps before the first incremental one on."""
    side, given, rel = ids
    first = max(0, timeline.base_step - MAX_GAP)
    times = torch.arange(first, timeline.num_steps, device=timeline.device)
    quads = torch.full((len(times), 4), given, device=timeline.device)
    quads[:, REL], quads[:, TIME] = rel, times
    row, answer = timeline.answers(side, which).expand(quads)
    holds: dict[int, list[int]] = {}
    for time, entity in zip((row + first).tolist(), answer.tolist(), strict=True):
        holds.setdefault(entity, []).append(time)
    return holds


def rank_answers(
    question: Question,
    ids: QuestionIds,
    answers: Tensor,
    model: TKGModel,
    timeline: Timeline,
    time: int,
    candidates: Tensor,
    entities: Sequence[str],
) -> None:
    """Adds the ranks of the answers to a question, and the first answers, after a step. An entity that is not known
    yet has not been learnt: as an answer it has no rank, and a question about it no first answers.

    Args:
        question: The question.
        ids: Its ids.
        answers: The ids of its answers.
        model: The model after that step.
        timeline: The graph.
        time: The step, at which the question is asked.
        candidates: ``[m, d]`` vectors of the entities known at it.
        entities: Names of the entities.
    """
    side, given, rel = ids
    known, first = timeline.known_entities(time), list[str]()
    ranks: list[float | None] = [None] * len(answers)
    if timeline.first_seen[given] <= time:
        quad = torch.full((1, 4), given, device=timeline.device)
        quad[:, REL], quad[:, TIME] = rel, time
        scores = model.score_all(quad, side, candidates)
        best = scores[0].topk(min(_FIRST, len(known))).indices
        first = [entities[entity] for entity in known[best].tolist()]
        columns = timeline.column_of[answers]
        places = (columns < len(known)).nonzero().squeeze(1)
        found = raw_ranks(scores.expand(len(places), -1), columns[places])
        for place, rank in zip(places.tolist(), found.tolist(), strict=True):
            ranks[place] = rank
    question.first.append(first)
    for answer, rank_now in zip(question.answers, ranks, strict=True):
        answer.ranks.append(rank_now)
