"""Ranks by sorting every candidate's score, and the paper's metrics by sums over rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from oracles.facts import Row, TimelineOracle
from oracles.scores import with_answer

SIDES = ("tail", "head")
Query = tuple[str, int, int]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def place(scores: list[float], own: float) -> float:
    """The mean of the best and the worst place of ``own`` when ``scores``, which hold it, are sorted."""
    ordered = sorted(scores, reverse=True)
    places = [place for place, score in enumerate(ordered, start=1) if score == own]
    return (places[0] + places[-1]) / 2


@dataclass
class RankOracle:
    """Ranks of test rows; ``score`` gives the score of any row."""

    line: TimelineOracle
    score: Callable[[Row], float]
    split: str = "test"
    window: int = 10
    count_repeats: bool = True
    candidates: str = "known"
    exclude_ended: bool = False

    def rows(self, step: int) -> list[Row]:
        rows = [row for row in getattr(self.line, self.split) if row[3] == step]
        return sorted(rows if self.count_repeats else set(rows))

    def questions(self, step: int) -> list[tuple[Row, str]]:
        """Both directions of every row."""
        return [(row, side) for side in SIDES for row in self.rows(step)]

    def rank(self, row: Row, side: str, answer: int, filtered: bool) -> float:
        all_entities = set(range(self.line.num_entities))
        candidates = self.line.known_entities(row[3]) if self.candidates == "known" else all_entities
        if filtered:
            candidates -= self.line.answers(side, "all", row) - {answer}
        scores = {entity: self.score(with_answer(row, side, entity)) for entity in candidates}
        if self.exclude_ended:
            scores |= dict.fromkeys(self.deleted_answers(row, side, "train") & candidates, -math.inf)
        return place(list(scores.values()), scores[answer])

    def own_ranks(self, step: int, filtered: bool) -> list[float]:
        return [
            self.rank(row, side, row[2] if side == "tail" else row[0], filtered) for row, side in self.questions(step)
        ]

    def deleted_answers(self, row: Row, side: str, which: str = "all") -> set[int]:
        """True in the window before, and not now."""
        time = row[3]
        before = [self.line.answers(side, which, (*row[:3], then)) for then in range(time - self.window, time)]
        return set().union(*before) - self.line.answers(side, which, row)

    # The metrics ---------------------------------------------------------------------------------------

    def hits(self, step: int, k: int = 10, filtered: bool = True) -> float:
        return 100 * mean([float(rank <= k) for rank in self.own_ranks(step, filtered)])

    def new_entity_hits(self, step: int, base_step: int, k: int = 10) -> float:
        """Of queries whose answer was not known at the last step of the base model."""
        asked = [row[2] if side == "tail" else row[0] for row, side in self.questions(step)]
        pairs = zip(asked, self.own_ranks(step, True), strict=True)
        return 100 * mean(
            [float(rank <= k) for answer, rank in pairs if answer not in self.line.known_entities(base_step)]
        )

    def mrr(self, step: int, filtered: bool = True) -> float:
        return 100 * mean([1 / rank for rank in self.own_ranks(step, filtered)])

    def link_prediction(self, first: int, last: int) -> dict[str, float]:
        ranks = [rank for step in range(first, last + 1) for rank in self.own_ranks(step, True)]
        hits = {f"Hits@{k}": 100 * mean([float(rank <= k) for rank in ranks]) for k in (1, 3, 10)}
        return {"MRR": 100 * mean([1 / rank for rank in ranks]), **hits}

    def average(self, step: int, first: int = 0) -> float:
        return mean([self.hits(j) for j in range(first, step + 1) if self.rows(j)])

    def deleted_hits(self, step: int, per_query: bool, k: int = 10) -> float:
        found, asked = [], set()
        for row, side in self.questions(step):
            query: Query = (side, row[0] if side == "tail" else row[2], row[1])
            if not per_query or query not in asked:
                found += [float(self.rank(row, side, entity, False) <= k) for entity in self.deleted_answers(row, side)]
            asked.add(query)
        return 100 * mean(found)

    def reciprocal_rank_difference(self, step: int) -> float:
        differences = []
        for row, side in self.questions(step):
            own = self.rank(row, side, row[2] if side == "tail" else row[0], False)
            differences += [
                1 / own - 1 / self.rank(row, side, entity, False) for entity in self.deleted_answers(row, side)
            ]
        return 100 * mean(differences)
