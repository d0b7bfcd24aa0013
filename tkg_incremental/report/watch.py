"""Ranks of the answers of some questions through a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import REL, SIDES, TIME, Side, query_columns
from tkg_incremental.ops.ranking import RankedAnswers, count_ranks, ranks_of
from tkg_incremental.report.changes import Handover, Question, WatchedAnswer
from tkg_incremental.report.handovers import MAX_GAP, Handovers, QuestionIds

# Maximum number of answers per question: the latest ones.
_MAX_ANSWERS = 12
# Number of first answers that are recorded by name.
_FIRST = 3


def raw_ranks(model: TKGModel, timeline: Timeline, quads: Tensor, side: Side, candidates: Tensor) -> Tensor:
    """Raw ranks ``[n]`` of the ``side`` of quads of one step among the entities known at it.

    Args:
        model: The model.
        timeline: The graph.
        quads: ``[n, 4]`` quads of known entities, all of one step.
        side: The side that is asked for.
        candidates: ``[m, d]`` vectors of the known entities.
    """
    owner = torch.arange(len(quads), device=quads.device)
    column = timeline.column_of[quads[:, query_columns(side)[1]]]
    none = (owner[:0], owner[:0])
    query = model.query_vectors(quads, side)
    return ranks_of(count_ranks(RankedAnswers(query, owner, column, none), candidates, model.decoder.similarity))[1]


class WatchList:
    """Questions with their answers at the incremental steps.

    Args:
        timeline: The graph.
        handovers: Handovers by side.
        questions: The questions.
        entities: Names of the entities.
        relations: Names of the relations.
    """

    def __init__(
        self,
        timeline: Timeline,
        handovers: dict[Side, Handovers],
        questions: Sequence[QuestionIds],
        entities: Sequence[str],
        relations: Sequence[str],
    ) -> None:
        self.timeline, self._entities, self._ids = timeline, entities, list(questions)
        self.questions: list[Question] = []
        self._answers: dict[Side, list[WatchedAnswer]] = {side: [] for side in SIDES}
        triples: dict[Side, list[list[int]]] = {side: [] for side in SIDES}
        for ids in questions:
            holds, learnt = self._holds(ids, "all"), self._holds(ids, "train")
            # The outgoing answer of a handover at the first step need not hold at any incremental one.
            latest = sorted(holds, key=lambda entity: (holds[entity], entity))[-_MAX_ANSWERS:]
            place = {entity: i for i, entity in enumerate(latest)}
            first = timeline.base_step
            answers = [
                WatchedAnswer(entities[entity], [step for step in holds[entity] if step >= first], entity in learnt)
                for entity in latest
            ]
            changes = _handovers_of(ids, handovers[ids.side], place)
            self.questions.append(Question(ids.side, relations[ids.rel], entities[ids.given], answers, changes))
            self._answers[ids.side] += answers
            given, asked = query_columns(ids.side)
            for entity in latest:
                triple = [0, ids.rel, 0]
                triple[given], triple[asked] = ids.given, entity
                triples[ids.side].append(triple)
        self._triples = {
            side: torch.tensor(rows, dtype=torch.long, device=timeline.device).view(-1, 3)
            for side, rows in triples.items()
        }

    def _holds(self, ids: QuestionIds, which: Literal["train", "all"]) -> dict[int, list[int]]:
        """The steps at which each answer holds, from a few steps before the first incremental one on."""
        line = self.timeline
        first = max(0, line.base_step - MAX_GAP)
        times = torch.arange(first, line.num_steps, device=line.device)
        quads = torch.full((len(times), 4), ids.given, device=line.device)
        quads[:, REL], quads[:, TIME] = ids.rel, times
        row, answer = line.answers(ids.side, which).expand(quads)
        holds: dict[int, list[int]] = {}
        for time, entity in zip((row + first).tolist(), answer.tolist(), strict=True):
            holds.setdefault(entity, []).append(time)
        return holds

    def rank(self, model: TKGModel, time: int, candidates: Tensor) -> None:
        """Adds the rank of every answer after step ``time``.

        Args:
            model: The model after that step.
            time: The step, at which the questions are asked.
            candidates: ``[m, d]`` vectors of the entities known at it.
        """
        for side in SIDES:
            triples, answers = self._triples[side], self._answers[side]
            # Entities that appear later have not been learnt yet.
            known = (self.timeline.first_seen[triples[:, [0, 2]]] <= time).all(1)
            rows = torch.cat([triples, torch.full_like(triples[:, :1], time)], dim=1)[known]
            ranks: list[float | None] = [None] * len(answers)
            if len(rows):
                found = raw_ranks(model, self.timeline, rows, side, candidates).tolist()
                for i, rank in zip(known.nonzero().flatten().tolist(), found, strict=True):
                    ranks[i] = rank
            for answer, rank_now in zip(answers, ranks, strict=True):
                answer.ranks.append(rank_now)
        self._record_first(model, time, candidates)

    def _record_first(self, model: TKGModel, time: int, candidates: Tensor) -> None:
        """Adds the first answers of every question after step ``time``; none while its entity is not known."""
        known = self.timeline.known_entities(time)
        for ids, question in zip(self._ids, self.questions, strict=True):
            if self.timeline.first_seen[ids.given] > time:
                question.first.append([])
                continue
            quad = torch.full((1, 4), ids.given, device=self.timeline.device)
            quad[:, REL], quad[:, TIME] = ids.rel, time
            best = model.score_all(quad, ids.side, candidates)[0].topk(min(_FIRST, len(known))).indices
            question.first.append([self._entities[entity] for entity in known[best].tolist()])


def _handovers_of(ids: QuestionIds, changes: Handovers, place: dict[int, int]) -> list[Handover]:
    mine = (changes.given == ids.given) & (changes.rel == ids.rel)
    rows = torch.stack([changes.time, changes.old, changes.new], dim=1)[mine].tolist()
    return [Handover(time, place[old], place[new]) for time, old, new in rows if old in place and new in place]
