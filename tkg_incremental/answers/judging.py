"""The questions that a calibration is about, and which of their answers are true."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tkg_incremental.answers.engine import AnswerEngine
from tkg_incremental.answers.facts import Marks, mark, marks_of
from tkg_incremental.data import Timeline
from tkg_incremental.ops.answers import REL, SIDES, TIME, AnswerIndex, Side, query_columns
from tkg_incremental.ops.keys import find

# Share of questions that are followed by three without an answer.
_UNANSWERABLE = 0.6
# Scores that are held at once.
_MAX_SCORES = 1_000_000


#: Questions about one relation: which ``[B]``, the relation, its candidates ``[n]``, ascending, with their scores
#: ``[B, n]``, what the engine knows about them, and which are true in any split ``[B, n]``.
Scored = tuple[Tensor, int, Tensor, Tensor, Marks, Tensor]


def score_questions(engine: AnswerEngine, timeline: Timeline, quads: Tensor, side: Side) -> Iterator[Scored]:
    """Scores the candidates of questions ``[n, 4]``. Questions with fewer than two candidates are left out."""
    for rel in torch.unique(quads[:, REL]).tolist():
        candidates = engine.candidates(rel, side)
        if len(candidates) < 2:
            continue
        for rows in (quads[:, REL] == rel).nonzero().flatten().split(max(1, _MAX_SCORES // len(candidates))):
            some = quads[rows]
            known = [engine.facts.answers(given, rel, side) for given in some[:, query_columns(side)[0]].tolist()]
            marks = marks_of(known, some[:, TIME].tolist(), candidates, engine.facts.is_closed(rel))
            true = _are_true(candidates, some, timeline.answers(side, "all"))
            yield rows, rel, candidates, engine.scores_of(some, side, candidates), marks, true


def judge(
    engine: AnswerEngine,
    timeline: Timeline,
    train: Tensor,
    quads: Tensor,
    split: str,
    generator: torch.Generator,
    best: int,
    others: int = 0,
) -> tuple[Tensor, Tensor, Tensor, int]:
    """The best answers to the questions that a calibration is about, among candidates of the right type: the questions
    of held-out quads and of train quads, in both directions.

    Known facts, those that are over, and answers of the other held-out split are left out, so most questions of train
    quads have no further answer. A share of the held-out questions is followed by three without an answer, see
    :func:`without_answer`.

    Args:
        engine: The engine.
        timeline: The graph.
        train: ``[m, 4]`` train quads.
        quads: ``[n, 4]`` quads of one split.
        split: ``"val"`` or ``"test"``.
        generator: Source of randomness.
        best: Number of answers with the highest scores.
        others: Number of further answers that are drawn.

    Returns:
        Features of the answers ``[m, f]``, which are true ``[m]``, which belong to the question of a held-out quad
        ``[m]``, and the number of questions.
    """
    features, is_true, is_held_out, count = [], [], [], 0
    for side in SIDES:
        followed = torch.rand(len(quads), generator=generator) < _UNANSWERABLE
        unanswerable = without_answer(timeline, quads.cpu()[followed], side, generator)
        asked = torch.cat([quads.cpu(), train.cpu(), unanswerable])
        right = AnswerIndex(timeline.split(split).facts, side, timeline.num_entities, timeline.num_relations)
        for rows, rel, candidates, scores, marks, is_true_anywhere in score_questions(engine, timeline, asked, side):
            held_out = rows < len(quads)
            own = asked[rows, query_columns(side)[1]].contiguous()
            counts = find(candidates, own)[1] | ~held_out
            if not bool(counts.any()):
                continue
            true = _are_true(candidates, asked[rows], right)
            allowed = marks.open & (true | ~is_true_anywhere) & counts[:, None]
            chosen, is_chosen = _choose(scores, allowed, best, others, generator)
            features.append(engine.features(rel, side, scores, marks, chosen)[is_chosen])
            is_true.append(true.gather(1, chosen)[is_chosen])
            is_held_out.append(held_out[:, None].expand_as(chosen)[is_chosen])
            count += int(counts.sum())
    if not count:
        nothing = torch.empty(0, dtype=torch.bool)
        return torch.empty(0, 0), nothing, nothing, 0
    return torch.cat(features), torch.cat(is_true), torch.cat(is_held_out), count


def without_answer(timeline: Timeline, quads: Tensor, side: Side, generator: torch.Generator) -> Tensor:
    """Questions without an answer, ``[n, 4] → [m, 4]`` with :math:`m ≤ 3n`, in the place of those of quads: one about
    any entity and relation that were never seen together, one about an entity that was on the same side of other
    relations only, and one about a train fact at a time at which the question has no answer."""
    facts, index, given = timeline.observed.facts.cpu(), timeline.answers(side, "all"), query_columns(side)[0]
    if not len(quads) or not len(facts):
        return quads[:0]

    def draw(size: int) -> Tensor:
        return torch.randint(size, (len(quads),), generator=generator)

    foreign, alike, ended = quads.clone(), quads.clone(), quads.clone()
    foreign[:, given], foreign[:, REL] = draw(timeline.num_entities), draw(timeline.num_relations)
    alike[:, given] = facts[draw(len(facts)), given]
    never = torch.cat([foreign, alike])
    never = never[(index.spans(never.to(timeline.device))[1] == 0).cpu()]
    for rel in torch.unique(quads[:, REL]).tolist():
        rows, same = (quads[:, REL] == rel).nonzero().flatten(), facts[facts[:, REL] == rel, given]
        if len(same):
            ended[rows, given] = same[torch.randint(len(same), (len(rows),), generator=generator)]
    ended[:, TIME] = draw(timeline.num_steps)
    return torch.cat([never, ended[~index.has_answers(ended.to(timeline.device)).cpu()]])


def _choose(
    scores: Tensor, allowed: Tensor, best: int, others: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Places of the highest scores among the allowed ones, then of some others: ``[B, n] → [B, k]`` and which of them
    are allowed."""
    best = min(best, scores.size(1))
    top = scores.masked_fill(~allowed, -torch.inf).topk(best, dim=1).indices
    rest = allowed.scatter(1, top, False)
    drawn = torch.rand(scores.shape, generator=generator).masked_fill(~rest, -1.0)
    drawn = drawn.topk(min(others, scores.size(1)), dim=1).indices
    return torch.cat([top, drawn], 1), torch.cat([allowed.gather(1, top), rest.gather(1, drawn)], 1)


def _are_true(candidates: Tensor, quads: Tensor, index: AnswerIndex) -> Tensor:
    row, entity = index.expand(quads.to(index.entity.device))
    return mark(candidates, row.cpu(), entity.cpu(), len(quads))
