"""Answers by name: candidates of the right type, known facts marked, calibrated probabilities."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import torch
from torch import Tensor

from tkg_incremental.answers.answer import Answer, Answers, TimelinePoint, listed
from tkg_incremental.answers.facts import Interval, KnownFacts, Marks, TensorFacts, marks_of
from tkg_incremental.answers.features import NUM_FEATURES, NUM_OWN, answer_features
from tkg_incremental.data import TimeAxis
from tkg_incremental.data.dates import start_of
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import FIRST, LAST, Side
from tkg_incremental.ops.keys import find

#: Share of known facts that is taken to be a mistake in the data, and the most that a fact is given that is over.
MISTAKES = 0.01


class Names(Protocol):
    """Names of entities or relations and their ids, such as :class:`~tkg_incremental.data.Vocabulary`."""

    def index(self, name: str | int) -> int: ...

    def __getitem__(self, index: int) -> str: ...


class AnswerEngine:
    """Answers questions by name with a model and the facts it was trained on.

    Args:
        model: The model.
        facts: Known facts and types.
        entities: Names of entities.
        relations: Names of relations.
        axis: What each step stands for.
        calibration: Turns features of an answer into a probability; by default there are no probabilities.
        last_step: The last step that the model learnt; by default the last of the axis.
    """

    def __init__(
        self,
        model: TKGModel,
        facts: KnownFacts,
        entities: Names,
        relations: Names,
        axis: TimeAxis,
        calibration: AnswerCalibration | None = None,
        last_step: int | None = None,
    ) -> None:
        self.model, self.facts, self.entities, self.relations = model, facts, entities, relations
        self.axis, self.calibration = axis, calibration or AnswerCalibration()
        self.last_step = axis.num_steps - 1 if last_step is None else last_step

    @classmethod
    def from_catalog(cls, model: TKGModel) -> AnswerEngine:
        """The engine of a model that has a catalog."""
        catalog = model.catalog
        if catalog is None:
            raise RuntimeError("this model has no catalog of names: make it with from_dataset(), or set .catalog")
        last = catalog.axis.num_steps - 1 if catalog.last_step is None else catalog.last_step
        facts = catalog.facts[catalog.facts[:, FIRST] <= last].long()
        facts[:, LAST].clamp_(max=last)
        calibration = catalog.calibration and AnswerCalibration.from_dict(catalog.calibration)
        names = catalog.entities, catalog.relations, catalog.axis
        return cls(model, TensorFacts(facts, last + 1), *names, calibration or None, last)

    def query(
        self,
        head: str | int | None,
        rel: str | int | None,
        tail: str | int | None,
        at: Any,
        k: int = 10,
        any_type: bool = False,
    ) -> list[Answer]:
        """The ``k`` best answers to a question: known facts first, then predictions, last facts that are known to be
        over or not to have begun.

        Args:
            head: Name or id; :obj:`None` if it is asked for.
            rel: Name or id of the relation; :obj:`None` if it is asked for.
            tail: Name or id; :obj:`None` if it is asked for.
            at: A date or label.
            k: Number of answers.
            any_type: Rank all entities, not only those that were on that side of the relation in some fact. The others
                get no probability: it is calibrated for candidates of the right type.
        """
        if sum(name is None for name in (head, rel, tail)) != 1:
            raise ValueError(f"exactly one of head, rel and tail must be None (got {head!r}, {rel!r} and {tail!r})")
        if at is None:
            raise ValueError("time must be given (got None)")
        if k < 1:
            raise ValueError(f"k must be at least 1 (got {k})")
        if rel is None:
            ends = self.entities.index(head), self.entities.index(tail)  # type: ignore[arg-type]
            return Answers(self._relations(*ends, self.step_of(at))[:k])
        side: Side = "head" if head is None else "tail"
        given = self.entities.index(tail if head is None else head)  # type: ignore[arg-type]
        relation, step = self.relations.index(rel), self.step_of(at)
        candidates = self.candidates(relation, side, any_type)
        if not len(candidates):
            return Answers()
        scores = self.scores(given, relation, side, step, candidates)
        answers = self.facts.answers(given, relation, side)
        marks = self._marks(answers, relation, step, candidates)
        order = torch.cat([_best(scores, some, k) for some in (marks.known, marks.open, marks.over)])[:k]
        members, ranked, chosen = candidates, (scores, marks), order
        if any_type:  # probabilities are those among the candidates of the right type
            members = self.candidates(relation, side)
            ranked = scores[members], self._marks(answers, relation, step, members)
            chosen = torch.searchsorted(members, order).clamp(max=max(0, len(members) - 1))
        probabilities = torch.full((len(order),), torch.nan, dtype=torch.double)
        if len(members):
            found = self.probabilities(relation, side, *ranked, chosen)
            probabilities = torch.where(members[chosen] == candidates[order], found, probabilities)
        listing = []
        for entity, value, score in zip(candidates[order].tolist(), probabilities, scores[order].tolist(), strict=True):
            name, intervals = self.entities[entity], answers.get(entity, [])
            listing.append(self._answer(name, _probability(value), score, relation, step, intervals))
        return Answers(listed(listing))

    def _answer(
        self, name: str, probability: float | None, score: float, rel: int, step: int, intervals: list[Interval]
    ) -> Answer:
        """An answer with what the intervals of its fact say about a step."""
        labels = self.axis.labels
        for interval in intervals:
            if interval.covers(step):
                until = None if interval.last is None else labels[interval.last]
                return Answer(name, probability, score, (labels[interval.first], until))
        if not self.facts.is_closed(rel):
            return Answer(name, probability, score, None)
        ends = [interval.last + 1 for interval in intervals if interval.last is not None and interval.last < step]
        firsts = [interval.first for interval in intervals if interval.first > step]
        ended = labels[max(ends)] if ends else None
        begins = None
        if firsts:
            begins = labels[min(firsts)] if min(firsts) < len(labels) else f"after {labels[-1]}"
        return Answer(name, probability, score, None, ended, begins)

    def check(self, head: str | int, rel: str | int, tail: str | int, at: Any) -> Answer:
        """The probability that a fact holds at a time."""
        h, r, t = self._fact(head, rel, tail)
        step = self.step_of(at)
        score, probability = self._check(h, r, t, step)
        return self._answer(self.entities[t], probability, score, r, step, self.facts.intervals(h, r, t))

    def timeline(self, head: str | int, rel: str | int, tail: str | int) -> list[TimelinePoint]:
        """The probability of a fact at every step."""
        h, r, t = self._fact(head, rel, tail)
        intervals = self.facts.intervals(h, r, t)
        points = []
        for step in range(self.last_step + 1):
            score, probability = self._check(h, r, t, step)
            is_known = any(interval.covers(step) for interval in intervals)
            points.append(TimelinePoint(self.axis.labels[step], probability, score, is_known))
        return points

    def _fact(self, head: str | int | None, rel: str | int | None, tail: str | int | None) -> tuple[int, int, int]:
        """The ids of a fact."""
        if head is None or rel is None or tail is None:
            raise ValueError(
                f"a fact has a head, a relation and a tail: query() leaves one out (got {head, rel, tail})"
            )
        return self.entities.index(head), self.relations.index(rel), self.entities.index(tail)

    def _relations(self, head: int, tail: int, step: int) -> list[Answer]:
        """The relations that fit (head, ?, tail): known facts, then the most probable, then those that are over."""
        answers = []
        for rel in self.facts.relations_of_type(head, tail):
            score, probability = self._check(head, rel, tail, step)
            intervals = self.facts.intervals(head, rel, tail)
            answers.append(self._answer(self.relations[rel], probability, score, rel, step, intervals))
        return listed(answers)

    # Scores --------------------------------------------------------------------------------------------

    def step_of(self, at: Any) -> int:
        """The step of a date. A date after the last step that the model learnt is answered as of that step, and one
        coarser than the steps as of its beginning, each with a warning; a date before the first step is an error."""
        begin = start_of(at, self.axis.unit)
        if begin is not None:
            warnings.warn(f"{at} is read as {begin}", stacklevel=3)
            at = begin
        step = self.axis.num_steps if self.axis.is_after(at) else self.axis.step_of(at)
        if step <= self.last_step:
            return step
        label = self.axis.labels[self.last_step]
        warnings.warn(f"{at} is after the last step the model learnt: answered as of {label}", stacklevel=3)
        return self.last_step

    def candidates(self, rel: int, side: Side, any_type: bool = False) -> Tensor:
        """``[n]`` the entities to rank."""
        if any_type:
            return torch.arange(self.model.sizes["entity"])
        return self.facts.type_members(rel, side)

    @torch.no_grad()
    def evaluate(
        self, given: int, rel: int, side: Side, step: int, candidates: Tensor, chosen: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Scores and probabilities of candidates, ``[n] → 2 × [n]``, or of those at the places ``chosen``. A
        probability that was not calibrated is NaN."""
        chosen = torch.arange(len(candidates)) if chosen is None else chosen
        scores = self.scores(given, rel, side, step, candidates)
        marks = self._marks(self.facts.answers(given, rel, side), rel, step, candidates)
        return scores[chosen], self.probabilities(rel, side, scores, marks, chosen)

    def _marks(self, answers: dict[int, list[Interval]], rel: int, step: int, candidates: Tensor) -> Marks:
        """What is known about the candidates of one question, from its answers at any step."""
        marks = marks_of([answers], [step], candidates, self.facts.is_closed(rel))
        return Marks(marks.known[0], marks.other[0], marks.is_closed)

    @torch.no_grad()
    def probabilities(self, rel: int, side: Side, scores: Tensor, marks: Marks, chosen: Tensor) -> Tensor:
        """Probabilities of the candidates at the places ``chosen``, ``[k] → [k]``, at most ``MISTAKES`` if one is
        over. Arguments as of :meth:`features`."""
        nothing = torch.full((len(chosen),), torch.nan, dtype=torch.double)
        if self.calibration.predicted is None and self.calibration.known is None:
            return nothing
        features = self.features(rel, side, scores, marks, chosen)
        predicted = self.calibration.predict(features[:, :NUM_FEATURES], features[:, NUM_FEATURES])
        learnt = nothing if self.calibration.known is None else self.calibration.known(features[:, :NUM_OWN])
        predicted = torch.where(marks.over[chosen], predicted.clamp(max=MISTAKES), predicted)
        return torch.where(marks.known[chosen], learnt, predicted)

    def features(self, rel: int, side: Side, scores: Tensor, marks: Marks, chosen: Tensor | None = None) -> Tensor:
        """:func:`answer_features` in the unit of the calibration."""
        return answer_features(self.facts, rel, side, scores, marks, self.calibration.unit, chosen)

    @torch.no_grad()
    def scores(self, given: int, rel: int, side: Side, step: int, candidates: Tensor) -> Tensor:
        """Scores of candidates, ``[n] → [n]``."""
        self.model.eval()
        device = self.model.device
        quad = torch.tensor([[given, rel, given, step]], device=device)
        return self.model.score_entities(quad, side, candidates.to(device)).cpu()

    @torch.no_grad()
    def scores_of(self, quads: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Scores of the same candidates in several questions, ``[B, 4] × [n] → [B, n]``."""
        self.model.eval()
        device = self.model.device
        return self.model.score_candidates(quads.to(device), side, candidates.to(device)).cpu()

    def _check(self, head: int, rel: int, tail: int, step: int) -> tuple[float, float | None]:
        """Score and probability of one fact: the mean score and the smaller probability of its two directions. For a
        former president, the country is a likely answer; for the country, the former president is not."""
        parts = []
        for given, answer, side in ((head, tail, "tail"), (tail, head, "head")):
            candidates = self.candidates(rel, side)  # type: ignore[arg-type]
            own = torch.tensor([answer])
            place = torch.searchsorted(candidates, own)
            if not bool(find(candidates, own)[1]):
                candidates = torch.cat([candidates[:place], own, candidates[place:]])
            found, probability = self.evaluate(given, rel, side, step, candidates, place)  # type: ignore[arg-type]
            parts.append((float(found), _probability(probability)))
        score = sum(part[0] for part in parts) / 2
        known = [part[1] for part in parts if part[1] is not None]
        return score, min(known) if known else None


def _best(scores: Tensor, allowed: Tensor, k: int) -> Tensor:
    """Places of the ``k`` highest scores among the allowed ones, highest first, equal ones by place."""
    places = allowed.nonzero().flatten()
    if len(places) > k:
        own = scores[places]
        # Not smaller than the k-th: equal scores and what is no number stay.
        places = places[~(own < own.topk(k).values[-1])]
    return places[torch.argsort(scores[places], descending=True, stable=True)][:k]


def _probability(value: Tensor) -> float | None:
    return None if bool(value.isnan()) else float(value)
