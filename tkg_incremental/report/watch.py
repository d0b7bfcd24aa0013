"""Following the answers of some questions through a run."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data import Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import SIDES, TIME, Side, query_columns
from tkg_incremental.ops.ranking import count_ranks
from tkg_incremental.report.changes import Handover, Question, WatchedAnswer
from tkg_incremental.report.handovers import MAX_GAP, Handovers, QuestionIds

# Of a question with many answers, the latest.
_MOST_ANSWERS = 12


def raw_ranks(model: TKGModel, timeline: Timeline, rows: Tensor, side: Side, candidates: Tensor) -> Tensor:
    """Raw ranks ``[n]`` of the ``side`` of each row among the entities known at the rows' one step.

    Args:
        model: The model.
        timeline: The graph.
        rows: ``[n, 4]`` rows of known entities.
        side: The side that is asked for.
        candidates: ``[m, d]`` vectors of the known entities.
    """
    owner = torch.arange(len(rows), device=rows.device)
    column = timeline.column_of[rows[:, query_columns(side)[1]]]
    none = (owner[:0], owner[:0])
    query = model.query_vectors(rows, side)
    return count_ranks(query, candidates, owner, column, none, model.decoder.similarity).raw


class WatchList:
    """Questions with all their answers of the incremental steps, ready to be ranked.

    Args:
        timeline: The graph.
        handovers: Handovers by side.
        questions: What to follow.
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
        self.timeline = timeline
        self.questions: list[Question] = []
        self._answers: dict[Side, list[WatchedAnswer]] = {side: [] for side in SIDES}
        triples: dict[Side, list[list[int]]] = {side: [] for side in SIDES}
        for ids in questions:
            holds, taught = self._holds(ids, "all"), self._holds(ids, "train")
            # The outgoing answer of a handover at the first step need not hold at any incremental one.
            latest = sorted(holds, key=lambda entity: (holds[entity], entity))[-_MOST_ANSWERS:]
            place = {entity: i for i, entity in enumerate(latest)}
            first = timeline.base_step
            answers = [
                WatchedAnswer(entities[entity], [step for step in holds[entity] if step >= first], entity in taught)
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

    def _holds(self, ids: QuestionIds, which: str) -> dict[int, list[int]]:
        """The steps at which each answer holds, from a little before the first incremental step on."""
        line = self.timeline
        first = max(0, line.base_step - MAX_GAP)
        times = torch.arange(first, line.num_steps, device=line.device)
        rows = torch.full((len(times), 4), ids.given, device=line.device)
        rows[:, 1], rows[:, TIME] = ids.rel, times
        index = line.answers(ids.side, "train" if which == "train" else "all")
        owner, column = index.expand(index.lookup(rows))
        holds: dict[int, list[int]] = {}
        for time, entity in zip((owner + first).tolist(), line.order[column].tolist(), strict=True):
            holds.setdefault(entity, []).append(time)
        return holds

    def rank(self, model: TKGModel, time: int, candidates: Tensor) -> None:
        """Adds the rank of every answer after step ``time``.

        Args:
            model: The model after that step.
            time: The step, which is also the one that is asked about.
            candidates: ``[m, d]`` vectors of the entities known at it.
        """
        for side in SIDES:
            triples, answers = self._triples[side], self._answers[side]
            # Who comes later has no vector yet that means anything.
            known = (self.timeline.first_seen[triples[:, [0, 2]]] <= time).all(1)
            rows = torch.cat([triples, torch.full_like(triples[:, :1], time)], dim=1)[known]
            ranks: list[float | None] = [None] * len(answers)
            if len(rows):
                found = raw_ranks(model, self.timeline, rows, side, candidates).tolist()
                for i, rank in zip(known.nonzero().flatten().tolist(), found, strict=True):
                    ranks[i] = rank
            for answer, rank_now in zip(answers, ranks, strict=True):
                answer.ranks.append(rank_now)


def _handovers_of(ids: QuestionIds, changes: Handovers, place: dict[int, int]) -> list[Handover]:
    mine = (changes.given == ids.given) & (changes.rel == ids.rel)
    rows = torch.stack([changes.time, changes.old, changes.new], dim=1)[mine].tolist()
    return [Handover(time, place[old], place[new]) for time, old, new in rows if old in place and new in place]
